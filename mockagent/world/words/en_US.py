"""American English."""

from mockagent.world.words.bank import Bank

BANK = Bank(
    things=(
        "the login flow", "flaky integration tests", "the retry logic", "a memory leak in the worker", "pagination",
        "the settings page", "the build pipeline", "CSV export", "the rate limiter", "websocket reconnects",
        "the search index", "dark mode", "the upload queue", "error messages", "the onboarding wizard", "cache keys",
        "token refresh", "the invoice template", "date parsing", "the permission checks", "webhook signatures",
        "the audit log", "slow dashboard queries", "the feature flags", "image thumbnails", "the release script",
        "password reset", "the config loader", "keyboard shortcuts", "the job scheduler", "time zone handling",
        "the mobile menu", "database migrations", "the health check", "duplicate notifications", "type annotations",
        "the API client", "log rotation", "the shopping cart", "unicode file names",
    ),
    places=(
        "", "", "", "in the API", "for mobile", "after the upgrade", "in staging", "on Windows", "in the admin area",
        "behind the proxy", "for new tenants", "in the CLI",
    ),
    titles=(
        "Fix {thing}", "Refactor {thing}", "Debug {thing}", "Document {thing}", "Speed up {thing}", "Rework {thing}",
        "Review {thing}", "Add tests for {thing}", "Simplify {thing}", "Clean up {thing}", "Investigate {thing}",
        "Plan the work on {thing}",
    ),
    asks=(
        "Can you take a look at {thing}? It broke after the last release.",
        "I want to rework {thing}. Where would you start?",
        "Please add tests for {thing} before I touch it.",
        "Users complain about {thing}. Find out what is going on.",
        "Explain how {thing} works today, then suggest something simpler.",
        "There is a TODO about {thing} in {file}. Let's finally do it.",
        "Something is off with {thing}. The logs point to {file}.",
    ),
    more=(
        "Looks good. Now run the tests again.",
        "Can you do the same in {file}?",
        "Why did you change {file}?",
        "Please keep the old behavior behind a flag.",
        "Add a line to the changelog, too.",
        "What happens if the input is empty?",
        "Good. Write a commit message for it.",
        "Undo the last change and try something smaller.",
    ),
    thoughts=(
        "I should read {file} before I change anything.",
        "The failing case is probably an off-by-one error.",
        "A small fix first, and a test that would have caught it.",
        "This has two callers; both have to keep working.",
        "The simplest explanation is a stale cache.",
        "I want to see the tests fail before I fix them.",
    ),
    answers=(
        "Done. The change is in `{file}`, and a new test covers it.",
        "The cause was a missing check in `{file}`: an empty list was treated as an error. It is fixed now.",
        "I moved the logic to `{file}` and removed the copy. All tests pass.",
        "Here is what I found: `{file}` reads the setting once, at start-up. Later changes are never seen.",
        "That works now. I left the public function as it was, so that nobody has to change their code.",
        "I would not change that: `{file}` relies on the order. A comment there says so now.",
    ),
    reads=("Read {file}", "Look at {file}"),
    edits=("Edit {file}", "Change {file}"),
    runs=("Run the tests", "Run the unit tests"),
    plan=("Reproduce the problem", "Read the code around it", "Write a failing test", "Fix it", "Run all tests"),
    passed="{n} passed",
)  # fmt: skip
