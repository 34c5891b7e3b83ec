package docexamples

// exceptions are the blocks that are not run, and why. The list is exact: an entry
// for a block that is gone fails.
var exceptions = []exception{
	{page: "README.md", starts: "make demo", reason: "CI runs both targets"},
	{page: "README.md", starts: "  event -->", reason: drawing},
	{page: "docs/architecture.md", language: plain, reason: drawing},
	{page: "docs/states.md", language: "mermaid", reason: drawing},
	{page: "docs/matching.md", language: plain, reason: "conditions with their results: TestTheExamplesOfTheDocumentation of internal/match evaluates each"},
	{page: "docs/backup.md", starts: "30 2 * * *", reason: "a line of a crontab: its command is that of the first example, which runs"},
	{page: "docs/backup.md", starts: "fanfare backup - | age", reason: needs + "age and gpg"},
	{page: "docs/conventions.md", starts: "GET /v1/events", reason: answer},
	{page: "docs/errors.md", language: values, reason: answer},
	{page: "docs/how-to/control-a-broadcast.md", starts: "wait      1,204", reason: output},
	{page: "docs/how-to/digests.md", language: values, reason: posted},
	{page: "docs/how-to/event-webhooks.md", language: values, reason: posted},
	{page: "docs/how-to/keep-conditions-cheap.md", starts: `{"id":"ada","created"`, reason: answer},
	{page: "docs/how-to/match-check.md", starts: "ceil(2 * R / k)", reason: "a formula"},
	{page: "docs/how-to/move-to-postgresql.md", starts: "fanfare migrate --from sqlite --to postgres", reason: postgres},
	{page: "docs/how-to/move-to-postgresql.md", starts: "20261120  attempts", reason: output},
	{page: "docs/how-to/move-to-postgresql.md", starts: "fanfare migrate --from sqlite --to db", reason: postgres},
	{page: "docs/how-to/postgresql.md", language: "sql", reason: postgres},
	{page: "docs/how-to/postgresql.md", starts: "fanfare doctor --config", reason: postgres},
	{page: "docs/how-to/postgresql.md", starts: "fanfare restore FILE", reason: postgres},
	{page: "docs/how-to/query-with-psql.md", language: "sql", reason: postgres},
	{page: "docs/how-to/query-with-psql.md", language: plain, reason: output},
	{page: "docs/how-to/receipts.md", language: values, reason: "a document that a provider posts: TestReceipts of internal/app takes it"},
	{page: "docs/how-to/receive-mail.md", starts: "bounces.example.org.   MX", reason: "records of the DNS"},
	{page: "docs/how-to/webhooks.md", language: values, reason: posted},
	{page: "docs/how-to/webhooks.md", language: "python", reason: receiver},
	{page: "docs/how-to/webhooks.md", language: "js", reason: receiver},
	{page: "docs/how-to/webhooks.md", language: "go", reason: receiver},
	{page: "docs/how-to/webhooks.md", language: "javascript", reason: receiver},
	{page: "docs/limits.md", language: plain, reason: output},
	{page: "docs/operations.md", starts: "make release-fixture", reason: "it makes what a release commits"},
	{page: "docs/operations.md", starts: "fanfare pause  --all |", reason: "the form of the commands: control-a-broadcast.md runs them"},
	{page: "examples/datasets/README.md", starts: "npm pack", reason: needs + "npm and pip, and other people's packages"},
	{page: "examples/stocks/README.md", starts: `{"id":"MSFT`, reason: "an event of the file that the page publishes"},
}

const (
	drawing  = "a drawing"
	output   = "it shows what a command prints"
	answer   = "it shows an answer of the server"
	posted   = "it shows what is posted to a receiver of webhooks"
	receiver = "a program of the reader's: internal/receivers runs it against the server"
	postgres = "it needs a PostgreSQL: internal/e2e runs these commands against one"
	needs    = "it needs programs that are not there on every machine: "
)

// plans are what pages need. A page without one is followed with testdata/base.
var plans = map[string]*plan{
	"README.md":                    {alone: true, service: "ops", savedAs: "load.yaml"},
	"docs/tutorial/first-topic.md": {alone: true, service: "weather", savedAs: "weather.yaml", fails: []string{"event.knotts"}},
}
