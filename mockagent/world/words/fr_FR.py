"""French."""

from mockagent.world.words.bank import Bank

BANK = Bank(
    things=(
        "la page de connexion", "les tests d'intégration instables", "la logique de reprise",
        "la fuite de mémoire du worker", "la pagination", "la page des réglages", "la chaîne de compilation",
        "l'export CSV", "le limiteur de débit", "la reconnexion des websockets", "l'index de recherche",
        "le mode sombre", "la file d'envoi", "les messages d'erreur", "l'assistant de démarrage",
        "les clés du cache", "le renouvellement des jetons", "le modèle de facture", "la lecture des dates",
        "le contrôle des droits", "les signatures des webhooks", "le journal d'audit", "les requêtes lentes",
        "les vignettes", "le script de publication", "le chargement de la configuration", "les raccourcis clavier",
        "les fuseaux horaires", "le menu mobile", "les migrations de la base", "les notifications en double",
        "le panier",
    ),
    places=(
        "", "", "", "dans l'API", "sur mobile", "après la mise à jour", "en préproduction", "sous Windows",
        "côté administration", "derrière le proxy",
    ),
    titles=(
        "Corriger {thing}", "Refondre {thing}", "Déboguer {thing}", "Documenter {thing}", "Accélérer {thing}",
        "Relire {thing}", "Tester {thing}", "Simplifier {thing}", "Nettoyer {thing}",
    ),
    asks=(
        "Peux-tu regarder {thing} ? C'est cassé depuis la dernière version.",
        "Je veux refondre {thing}. Par où commencerais-tu ?",
        "Ajoute des tests dans {file} avant que je touche à tout cela : je veux revoir {thing}.",
        "Des utilisateurs se plaignent. Examine {thing}, s'il te plaît.",
        "Il y a un TODO dans {file}. On va enfin corriger {thing}.",
    ),
    more=(
        "C'est bien. Relance les tests.",
        "Peux-tu faire pareil dans {file} ?",
        "Pourquoi as-tu changé {file} ?",
        "Ajoute aussi une ligne au changelog.",
        "Que se passe-t-il si l'entrée est vide ?",
        "Bien. Écris un message de commit.",
    ),
    thoughts=(
        "Je dois lire {file} avant de changer quoi que ce soit.",
        "C'est sans doute une erreur de borne dans la boucle.",
        "D'abord une petite correction, et un test qui l'aurait trouvée.",
        "Il y a deux appelants ; les deux doivent continuer à marcher.",
    ),
    answers=(
        "C'est fait. Le changement est dans `{file}`, un nouveau test le couvre.",
        "Il manquait une vérification dans `{file}` : une liste vide passait pour une erreur. C'est corrigé.",
        "J'ai déplacé la logique dans `{file}` et supprimé la copie. Tous les tests passent.",
        "Voici ce que j'ai trouvé : `{file}` lit le réglage une seule fois, au démarrage.",
        "Je n'y toucherais pas : `{file}` dépend de l'ordre.",
    ),
    reads=("Lire {file}",),
    edits=("Modifier {file}",),
    runs=("Lancer les tests",),
    plan=("Reproduire le problème", "Lire le code", "Écrire un test qui échoue", "Corriger", "Lancer tous les tests"),
    passed="{n} passed",
)  # fmt: skip
