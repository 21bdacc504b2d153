"""Spanish."""

from mockagent.world.words.bank import Bank

BANK = Bank(
    things=(
        "el inicio de sesión", "las pruebas de integración inestables", "la lógica de reintentos",
        "la fuga de memoria del worker", "la paginación", "la página de ajustes", "el proceso de compilación",
        "la exportación a CSV", "el limitador de peticiones", "la reconexión de websockets",
        "el índice de búsqueda", "el modo oscuro", "la cola de subidas", "los mensajes de error",
        "el asistente de bienvenida", "las claves de caché", "la renovación de tokens", "la plantilla de facturas",
        "la lectura de fechas", "la comprobación de permisos", "las firmas de webhooks", "el registro de auditoría",
        "las consultas lentas", "las miniaturas", "el script de publicación", "la carga de la configuración",
        "los atajos de teclado", "las zonas horarias", "el menú móvil", "las migraciones de la base de datos",
        "las notificaciones duplicadas", "el carrito de la compra",
    ),
    places=(
        "", "", "", "en la API", "en el móvil", "tras la actualización", "en preproducción", "en Windows",
        "en el panel de administración", "detrás del proxy",
    ),
    titles=(
        "Corregir {thing}", "Reescribir {thing}", "Depurar {thing}", "Documentar {thing}", "Acelerar {thing}",
        "Revisar {thing}", "Probar {thing}", "Simplificar {thing}", "Investigar {thing}",
    ),
    asks=(
        "¿Puedes mirar {thing}? Falla desde la última versión.",
        "Quiero rehacer {thing}. ¿Por dónde empezarías?",
        "Añade pruebas en {file} antes de que toque {thing}, por favor.",
        "Hay quejas de los usuarios. Revisa {thing} y dime qué pasa.",
        "Hay un TODO en {file}. Vamos a arreglar {thing} de una vez.",
    ),
    more=(
        "Tiene buena pinta. Ejecuta las pruebas otra vez.",
        "¿Puedes hacer lo mismo en {file}?",
        "¿Por qué has cambiado {file}?",
        "Añade también una línea al changelog.",
        "¿Qué pasa si la entrada está vacía?",
        "Bien. Escribe un mensaje de commit.",
    ),
    thoughts=(
        "Debería leer {file} antes de cambiar nada.",
        "Seguramente es un error en el límite del bucle.",
        "Primero un arreglo pequeño y una prueba que lo habría detectado.",
        "Lo llaman dos sitios; ambos tienen que seguir funcionando.",
    ),
    answers=(
        "Hecho. El cambio está en `{file}` y lo cubre una prueba nueva.",
        "Faltaba una comprobación en `{file}`: una lista vacía se trataba como error. Ya está corregido.",
        "He movido la lógica a `{file}` y he quitado la copia. Todas las pruebas pasan.",
        "Esto es lo que he visto: `{file}` lee el ajuste una sola vez, al arrancar.",
        "Yo no lo cambiaría: `{file}` depende del orden.",
    ),
    reads=("Leer {file}",),
    edits=("Editar {file}",),
    runs=("Ejecutar las pruebas",),
    plan=("Reproducir el problema", "Leer el código", "Escribir una prueba", "Corregirlo", "Pasar las pruebas"),
    passed="{n} passed",
)  # fmt: skip
