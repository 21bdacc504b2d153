"""German."""

from mockagent.world.words.bank import Bank

BANK = Bank(
    things=(
        "die Anmeldung", "die wackligen Integrationstests", "die Wiederholungslogik", "das Speicherleck im Worker",
        "die Seitennavigation", "die Einstellungen", "die Build-Pipeline", "den CSV-Export", "die Ratenbegrenzung",
        "den Verbindungsaufbau", "den Suchindex", "das dunkle Design", "die Upload-Warteschlange",
        "die Fehlermeldungen", "den Einrichtungsassistenten", "die Cache-Schlüssel", "die Token-Erneuerung",
        "die Rechnungsvorlage", "das Lesen von Datumsangaben", "die Rechteprüfung", "die Webhook-Signaturen",
        "das Audit-Protokoll", "die langsamen Abfragen", "die Feature-Schalter", "die Vorschaubilder",
        "das Release-Skript", "das Zurücksetzen des Passworts", "das Laden der Konfiguration", "die Tastenkürzel",
        "die Zeitzonen", "das mobile Menü", "die Datenbankmigrationen", "die doppelten Benachrichtigungen",
        "den Warenkorb",
    ),
    places=(
        "", "", "", "in der API", "auf dem Handy", "nach dem Update", "in der Testumgebung", "unter Windows",
        "im Adminbereich", "hinter dem Proxy", "für neue Mandanten",
    ),
    titles=(
        "{thing} reparieren", "{thing} überarbeiten", "{thing} untersuchen", "{thing} dokumentieren",
        "{thing} beschleunigen", "{thing} testen", "{thing} vereinfachen", "{thing} aufräumen", "{thing} umstellen",
    ),
    asks=(
        "Kannst du dir {thing} ansehen? Seit dem letzten Release klemmt es.",
        "Ich möchte {thing} überarbeiten. Wo würdest du anfangen?",
        "Schreib bitte Tests für {file}, bevor ich {thing} anfasse.",
        "Es gibt Beschwerden. Sieh dir bitte {thing} genauer an.",
        "In {file} steht ein TODO. Lass uns {thing} endlich angehen.",
    ),
    more=(
        "Sieht gut aus. Lass die Tests noch einmal laufen.",
        "Kannst du dasselbe in {file} machen?",
        "Warum hast du {file} geändert?",
        "Bitte auch eine Zeile ins Changelog.",
        "Was passiert bei leerer Eingabe?",
        "Gut. Schreib mir dazu eine Commit-Nachricht.",
    ),
    thoughts=(
        "Ich lese zuerst {file}, bevor ich etwas ändere.",
        "Vermutlich liegt der Fehler an der Grenze der Schleife.",
        "Zuerst ein kleiner Fix, dann ein Test, der ihn gefunden hätte.",
        "Es gibt zwei Aufrufer; beide müssen weiter funktionieren.",
    ),
    answers=(
        "Fertig. Die Änderung steht in `{file}`, ein neuer Test deckt sie ab.",
        "In `{file}` fehlte eine Prüfung: Eine leere Liste galt als Fehler. Das ist behoben.",
        "Ich habe die Logik nach `{file}` verschoben und die Kopie entfernt. Alle Tests laufen durch.",
        "Das habe ich gefunden: `{file}` liest die Einstellung nur beim Start.",
        "Das würde ich so lassen: `{file}` verlässt sich auf die Reihenfolge.",
    ),
    reads=("{file} lesen",),
    edits=("{file} ändern",),
    runs=("Tests ausführen",),
    plan=("Problem nachstellen", "Code dazu lesen", "Einen Test schreiben", "Beheben", "Alle Tests ausführen"),
    passed="{n} passed",
)  # fmt: skip
