package docexamples

// exceptions are the blocks that are not run, and why. The list is exact: an entry
// for a block that is gone fails.
var exceptions = []exception{
	{page: "README.md", starts: "make demo", reason: "CI runs both targets"},
	{page: "README.md", starts: "  event -->", reason: drawing},
	{page: "docs/explanation/architecture.md", language: plain, reason: drawing},
	{page: "docs/explanation/measurements.md", starts: "make measure", reason: "experiments in full size take hours"},
	{page: "docs/explanation/event-path.md", language: plain, reason: drawing},
	{page: "docs/reference/states.md", language: "mermaid", reason: drawing},
	{page: "docs/reference/conditions.md", language: plain, reason: "conditions with their results: TestTheExamplesOfTheDocumentation of internal/condition evaluates each"},
	{page: "docs/how-to/backup.md", starts: "30 2 * * *", reason: "a line of a crontab: its command is that of the first example, which runs"},
	{page: "docs/how-to/backup.md", starts: "fanfare backup - | age", reason: needs + "age and gpg"},
	{page: "docs/reference/api-conventions.md", starts: "GET /v1/events", reason: answer},
	{page: "docs/reference/errors.md", language: values, reason: answer},
	{page: "docs/how-to/pause-and-cancel.md", starts: "wait      1,204", reason: output},
	{page: "docs/how-to/digests.md", language: values, reason: posted},
	{page: "docs/how-to/status-callbacks.md", language: values, reason: posted},
	{page: "docs/how-to/condition-cost.md", starts: `{"id":"ada","created"`, reason: answer},
	{page: "docs/how-to/match-check.md", starts: "ceil(2 * R / k)", reason: "a formula"},
	{page: "docs/explanation/concepts.md", language: plain, reason: drawing},
	{page: "docs/how-to/high-availability.md", starts: "(umask 077; openssl", reason: needs + "openssl"},
	{page: "docs/how-to/high-availability.md", language: documentBlock, reason: cluster},
	{page: "docs/how-to/high-availability.md", starts: "fanfare serve", reason: cluster},
	{page: "docs/how-to/high-availability.md", starts: "curl -s https://node-1", reason: cluster},
	{page: "docs/how-to/high-availability.md", language: plain, reason: "it shows an answer of the server, and a configuration of HAProxy"},
	{page: "docs/how-to/deliver-from-several-nodes.md", language: documentBlock, reason: cluster},
	{page: "docs/how-to/deliver-from-several-nodes.md", starts: "fanfare serve", reason: cluster},
	{page: "docs/how-to/deliver-from-several-nodes.md", starts: "$ fanfare nodes", reason: cluster},
	{page: "docs/how-to/deliver-from-several-nodes.md", language: plain, reason: "a query for Prometheus"},
	{page: "examples/cluster/README.md", language: shell, reason: needs + "systemd, Docker or Kubernetes; TestSystemdUnitOfANodeIsValid and others of internal/config check the files"},
	{page: "docs/how-to/migrate-to-postgresql.md", starts: "fanfare migrate --from sqlite --to postgres", reason: postgres},
	{page: "docs/how-to/migrate-to-postgresql.md", starts: "20261120  attempts", reason: output},
	{page: "docs/how-to/migrate-to-postgresql.md", starts: "fanfare migrate --from sqlite --to db --dry-run", reason: postgres},
	{page: "docs/how-to/migrate-to-postgresql.md", starts: "fanfare migrate --from sqlite --to db --compare", reason: postgres},
	{page: "docs/how-to/postgresql.md", language: "sql", reason: postgres},
	{page: "docs/how-to/postgresql.md", starts: "fanfare doctor --config", reason: postgres},
	{page: "docs/how-to/postgresql.md", starts: "fanfare restore FILE", reason: postgres},
	{page: "docs/how-to/sql-queries.md", language: "sql", reason: postgres},
	{page: "docs/how-to/sql-queries.md", language: plain, reason: output},
	{page: "docs/how-to/delivery-receipts.md", language: values, reason: "a document that a provider posts: TestAReceiptMovesTheMessageThatItNames of internal/test/e2e"},
	{page: "docs/how-to/inbound-mail.md", starts: "bounces.example.org.   MX", reason: "records of the DNS"},
	{page: "docs/how-to/webhooks.md", language: values, reason: posted},
	{page: "docs/how-to/webhooks.md", language: "python", reason: receiver},
	{page: "docs/how-to/webhooks.md", language: "js", reason: receiver},
	{page: "docs/how-to/webhooks.md", language: "go", reason: receiver},
	{page: "docs/how-to/webhooks.md", language: "javascript", reason: receiver},
	{page: "docs/how-to/rate-limits.md", command: "$ fanfare destinations resume", reason: "it needs a destination that refuses: TestASickDestinationIsSeenAndResumedByHand of internal/test/e2e"},
	{page: "docs/how-to/templates.md", starts: "/templates/hook/json", reason: output},
	{page: "docs/how-to/templates.md", starts: "template story@3 fails", reason: output},
	{page: "docs/reference/api-limits.md", language: plain, reason: output},
	{page: "docs/how-to/operations.md", starts: "make release-fixture", reason: "it makes what a release commits"},
	{page: "docs/how-to/operations.md", starts: "fanfare parked list", reason: "it needs work that failed five times: TestWhatFailsTooOftenIsParkedAndCanBeRetried of internal/test/e2e"},
	{page: "docs/how-to/operations.md", starts: "fanfare pause  --all |", reason: "the form of the commands: pause-and-cancel.md runs them"},
	{page: commandReference, command: "fanfare backup - | zstd", reason: needs + "age"},
	{page: commandReference, command: "age -d -i key.txt nightly.tar.age | fanfare backup", reason: needs + "age"},
	{page: commandReference, command: "age -d -i key.txt nightly.tar.age | fanfare restore", reason: needs + "age"},
	{page: commandReference, command: "fanfare bench N1", reason: experiment},
	{page: commandReference, command: "fanfare bench cluster", reason: experiment},
	{page: commandReference, command: "fanfare bench --scale", reason: experiment},
	{page: commandReference, command: "fanfare bench --runs", reason: experiment},
	{page: commandReference, command: "fanfare bench pairs", reason: experiment},
	{page: commandReference, command: "fanfare bench report", reason: experiment},
	{page: commandReference, starts: "fanfare demo\n", reason: "it goes on for minutes: CI runs make demo, and internal/demo the parts"},
	{page: commandReference, command: "fanfare destinations resume", reason: "it needs a destination that refuses: TestASickDestinationIsSeenAndResumedByHand of internal/test/e2e"},
	{page: commandReference, command: "fanfare dkim rotate mail --in 168h", reason: "in place of the command before it, after which it is refused: dkim.md runs it with 72h"},
	{page: commandReference, command: "fanfare dkim rotate mail --in 0s", reason: "in place of the command before it, after which it is refused: dkim.md runs it with 72h"},
	{page: commandReference, command: "fanfare doctor\n", reason: "its exit code depends on the machine and on relays that are not there: delivery-trace.md runs it"},
	{page: commandReference, command: "fanfare doctor --config", reason: "with --strict its exit code depends on the machine"},
	{page: commandReference, command: "fanfare doctor --json | jq", reason: needs + "jq"},
	{page: commandReference, command: "fanfare report conditions --json | jq", reason: needs + "jq"},
	{page: commandReference, command: "fanfare state quotes --limit 1000 --json | jq", reason: needs + "jq"},
	{page: commandReference, command: "fanfare status --json | jq", reason: needs + "jq"},
	{page: commandReference, command: "fanfare export subscribers | fanfare import", reason: another},
	{page: commandReference, command: "fanfare export subscriptions | fanfare import", reason: another},
	{page: commandReference, command: "fanfare import subscriptions people.csv.errors", reason: "the file is what an import has left: internal/test/e2e imports it again"},
	{page: commandReference, starts: "fanfare migrate --from sqlite --to postgres", reason: postgres},
	{page: commandReference, starts: "fanfare parked drop", reason: "it needs work that failed five times: TestWhatIsParkedAndDroppedIsSettledAsCancelled of internal/test/e2e"},
	{page: commandReference, starts: "fanfare parked retry", reason: "it needs work that failed five times: TestWhatFailsTooOftenIsParkedAndCanBeRetried of internal/test/e2e"},
	{page: commandReference, command: "fanfare restore --list", reason: "it needs a restored server: backup.md has one"},
	{page: commandReference, command: "fanfare sink --http", reason: "it listens at a port that may be taken"},
	{page: "examples/datasets/README.md", starts: "npm pack", reason: needs + "npm and pip, and other people's packages"},
	{page: "examples/govuk/README.md", language: plain, reason: "parts of a rule of fanfare.yaml, which the page applies"},
	{page: "examples/stocks/README.md", starts: `{"id":"MSFT`, reason: "an event of the file that the page publishes"},
}

const (
	experiment = "an experiment, which takes minutes: internal/bench runs all of them at a small scale"
	another    = "it needs another server"
	drawing    = "a drawing"
	output     = "it shows what a command prints"
	answer     = "it shows an answer of the server"
	posted     = "it shows what is posted to a receiver of webhooks"
	receiver   = "a program of the reader's: internal/test/receivers runs it against the server"
	postgres   = "it needs a PostgreSQL: internal/test/e2e runs these commands against one"
	cluster    = "it needs PostgreSQL, NATS and several machines: cluster_test.go of internal/test/e2e runs a cluster"
	needs      = "it needs programs that are not there on every machine: "
)

// plans are what pages need. A page without one is followed with testdata/base.
var plans = map[string]*plan{
	"README.md":                     {alone: true, service: "ops", savedAs: "load.yaml", says: []string{`"created":true`, `"duplicate":false`}},
	"docs/tutorial/first-topic.md":  {alone: true, service: "weather", savedAs: "weather.yaml", fails: []string{"event.knotts"}, says: []string{"did you mean", `"duplicate":false`, "event.place == "}},
	"docs/how-to/double-opt-in.md":  {service: "city"},
	"docs/how-to/condition-cost.md": {service: "quakes"},
	"docs/how-to/webhooks.md":       {service: "stocks", savedAs: "stocks.yaml"},
	"docs/how-to/template-lint.md":  {fails: []string{"fanfare template lint"}},
	"docs/how-to/conditions.md":     {topic: "earthquake"},

	"docs/reference/template-variables.md": {topic: "publications"},
	"docs/how-to/pause-and-cancel.md":      {again: true},
	"docs/how-to/backup.md": {typed: []string{ // the restored server goes on until the block is done
		"fanfare serve --data-dir /var/lib/fanfare\n", "fanfare serve --data-dir /var/lib/fanfare --listen 127.0.0.1:18085 &\nexport FANFARE_SERVER=http://127.0.0.1:18085 FANFARE_DATA_DIR=/var/lib/fanfare\n",
		"fanfare resume --all\n", "fanfare resume --all\nkill %%; wait %% || :\n",
	}},
	commandReference: {again: true, typed: []string{
		"fanfare pause --all", "FANFARE_SERVICE= fanfare pause --all", "fanfare resume --all", "FANFARE_SERVICE= fanfare resume --all", "fanfare cancel --all", "FANFARE_SERVICE= fanfare cancel --all",
		"fanfare apply -f examples", "FANFARE_SERVICE= fanfare apply -f examples", "fanfare apply -f stocks", "FANFARE_SERVICE= fanfare apply -f stocks",
		"fanfare template lint -f", "FANFARE_SERVICE=earthquakes fanfare template lint -f",
		"fanfare channel delete mail", "fanfare channel delete hook", // nothing needs it
		"fanfare import subscribers people.ndjson", "fanfare import subscribers subscribers.ndjson",
		"quake --event evt-20261120-1001", "quake --event $QUAKE",
		"fanfare sink --show 10", "fanfare sink --smtp 127.0.0.1:0 --show 10", "0.0.0.0:8085", "127.0.0.1:0",
		"fanfare config check --config fanfare.yaml", "fanfare config check --config server.yaml",
		"erase ada --suppress --yes", "erase ada-3 --suppress --yes",
		"fanfare resume --broadcast", "fanfare pause --broadcast $EVENT; fanfare resume --broadcast",
		"fanfare rule delete earthquakes near", "fanfare subscription delete ada-alaska; fanfare rule delete earthquakes near",
		"fanfare rule put earthquakes near rule.yaml", "fanfare subscription delete ada-alaska; fanfare rule put earthquakes near rule.yaml",
		"fanfare topic delete earthquakes", "fanfare topic delete wind",
		"fanfare suppression get", "fanfare suppression add ada@example.com; fanfare suppression get",
		"fanfare template delete quake", "fanfare template delete invitation",
		"fanfare restore nightly.tar", "rm -rf var/lib/fanfare; fanfare restore nightly.tar",
	}},
	"docs/how-to/dkim.md": {typed: []string{ // the day in the names of the keys is that of the page
		"--out /etc/fanfare\n", "--out /etc/fanfare\nfor key in etc/fanfare/*.pem; do mv $key ${key/$(date -u +%Y%m%d)/20261120}; done\n",
	}},
	"docs/how-to/staging.md":             {alone: true},
	"docs/how-to/pause-subscriptions.md": {again: true},
	"examples/earthquakes/README.md":     {empty: true, service: "earthquakes", shows: "earthquakes/fanfare.yaml"},
	"examples/govuk/README.md":           {alone: true, service: "govuk", shows: "govuk/fanfare.yaml"},
	"examples/stocks/README.md":          {alone: true, service: "stocks", shows: "stocks/fanfare.yaml"},
}
