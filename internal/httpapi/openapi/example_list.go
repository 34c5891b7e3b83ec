package openapi

import (
	"fanfare.dev/fanfare/internal/httpapi/httpio"
)

const (
	yamlType = "application/yaml"
	jsonType = "application/json"
)

// examples returns the examples of the document, in an order in which they can be
// run: objects are created before they are read, and read before they are deleted.
// Ids assigned by the server are from another run: a program that runs the examples
// replaces them with the ids in the responses.
func examples() []example {
	return []example{
		{operation: "is-alive", status: 200},
		{operation: "is-ready", status: 200},
		{operation: "get-metrics", status: 200},
		{operation: "show-errors", status: 200},
		{operation: "show-documentation", status: 200},

		{operation: "apply", mediaType: yamlType, status: 200, body: `service: ops
channels:
  email: {driver: smtp, relay: "127.0.0.1:2525", from: "Fanfare <fanfare@example.org>"}
topics:
  load:
    schema: {type: object, properties: {host: {type: string}, percent: {type: number}}, required: [host, percent]}
    key: host
    template: load
    digest: {template: loads}
    signup: {terms: "https://example.org/terms/3"}
    rules:
      - {name: above, when: "event.percent > sub.percent", params: {percent: number}}
templates:
  load: {subject: "{{ event.host }} is at {{ event.percent }} %", text: "Hello {{ subscriber.address }}, you subscribed to this alert."}
  loads: {subject: "{{ count }} reports of load", text: "{% for item in items %}{{ item.event.host }}: {{ item.event.percent }} %. {% endfor %}"}
`},
		{operation: "apply", parameter: with("dry_run", "true"), mediaType: jsonType, status: 200,
			body: `{"service":"ops","topics":{"load":{"lane":"urgent","template":"load"}}}`},

		{operation: "put-service", parameter: with("service", "ops"), mediaType: jsonType, status: 200, body: `{"title":"Operations"}`},
		{operation: "put-channel", parameter: with("channel", "archive"), mediaType: jsonType, status: 201, body: `{"driver":"file","title":"Archive","path":"/tmp/archive","from":"Fanfare <fanfare@example.org>"}`},
		{operation: "put-template", parameter: with("template", "short"), mediaType: jsonType, status: 201, body: `{"subject":"{{ event.host }}","text":"{{ event.percent }} %"}`},
		{operation: "put-topic", parameter: with("topic", "disk"), mediaType: jsonType, status: 201,
			body: `{"title":"Disk usage","schema":{"type":"object","properties":{"host":{"type":"string"},"percent":{"type":"number"}}},"template":"short"}`},
		{operation: "put-topic", parameter: with("topic", "disk"), mediaType: yamlType, status: 200,
			body: "title: Disk usage\nschema: {type: object, properties: {host: {type: string}, percent: {type: number}}}\ntemplate: short\n"},
		{operation: "put-rule", parameter: with("topic", "disk", "rule", "above"), mediaType: jsonType, status: 201, body: `{"title":"Disks fuller than a limit","description":"Sends a message when a disk is fuller than your limit.","when":"event.percent > sub.percent","params":{"percent":"number"}}`},
		{operation: "list-services", status: 200},
		{operation: "get-service", parameter: with("service", "ops"), status: 200},
		{operation: "list-channels", status: 200},
		{operation: "get-channel", parameter: with("channel", "archive"), status: 200},
		{operation: "list-topics", status: 200},
		{operation: "get-topic", parameter: with("topic", "disk"), status: 200},
		{operation: "list-rules", parameter: with("topic", "disk"), status: 200},
		{operation: "get-rule", parameter: with("topic", "disk", "rule", "above"), status: 200},
		{operation: "list-templates", status: 200},
		{operation: "get-template", parameter: with("template", "short"), status: 200},
		{operation: "list-versions", parameter: with("template", "short"), status: 200},
		{operation: "get-version", parameter: with("template", "short", "version", "1"), status: 200},
		{operation: "put-draft", parameter: with("template", "short"), mediaType: jsonType, status: 201,
			body: `{"subject":"{{ event.host }} is at {{ event.percent }} %","text":"{{ event.percent }} %","note":"The subject shows the usage."}`},
		{operation: "get-draft", parameter: with("template", "short"), status: 200},
		{operation: "diff-versions", parameter: with("template", "short", "from", "1", "to", "draft"), status: 200},
		{operation: "publish-template", parameter: with("template", "short"), mediaType: jsonType, status: 200, body: `{}`},
		{operation: "publish-template", parameter: with("template", "short"), mediaType: jsonType, status: 200, body: `{"version":1,"note":"The text was too long for a watch."}`},
		{operation: "put-draft", parameter: with("template", "short"), mediaType: yamlType, status: 201, body: "subject: \"{{ event.host }}: {{ event.percent }} %\"\ntext: \"{{ event.percent }} %\"\n"},
		{operation: "delete-draft", parameter: with("template", "short"), status: 204},
		{operation: "delete-rule", parameter: with("topic", "disk", "rule", "above"), status: 204},
		{operation: "delete-topic", parameter: with("topic", "disk"), status: 204},
		{operation: "delete-template", parameter: with("template", "short"), status: 204},
		{operation: "delete-channel", parameter: with("channel", "archive"), status: 204},
		{operation: "delete-service", parameter: with("service", "trial"), status: 204},

		{operation: "put-worker", parameter: with("worker", "pricing"), mediaType: jsonType, status: 201, body: `{"title":"Pricing of options","command":["/opt/pricing/worker"],"version":"2026.11","concurrency":4,"timeout":"30s","actions":{"calibrate":{"timeout":"5m"}}}`},
		{operation: "put-worker", parameter: with("worker", "pricing"), mediaType: yamlType, status: 200, body: "title: Pricing of options\ncommand: [/opt/pricing/worker]\nmessage_limit: 500KB\n"},
		{operation: "list-workers", status: 200},
		{operation: "get-worker", parameter: with("worker", "pricing"), status: 200},
		{operation: "attach-instance", parameter: with("worker", "pricing", "instance", "host1-4711", "capacity", "4"), status: 426},
		{operation: "list-agents", status: 200},
		{operation: "attach-agent", parameter: with("agent", "host1"), status: 426},
		{operation: "open-session", mediaType: jsonType, status: 201, body: `{"worker":"pricing","kind":"durable","name":"risk-2026-11-27","max_instances":8,"priority":80,"resends":3,"idle_timeout":"24h"}`},
		{operation: "list-sessions", parameter: with("state", "open", "worker", "pricing"), status: 200},
		{operation: "get-session", parameter: with("session", "ses-1"), status: 200},
		{operation: "attach-client", parameter: with("session", "ses-1", "client", "risk", "from", "1"), status: 426},
		{operation: "list-responses", parameter: with("session", "ses-1", "client", "risk", "from", "1", "limit", "10"), status: 404},
		{operation: "trace-request", parameter: with("session", "ses-1", "client", "risk", "request", "1"), status: 404},
		{operation: "close-session", parameter: with("session", "ses-1", "purge", "true"), status: 204},
		{operation: "delete-worker", parameter: with("worker", "pricing"), status: 204},

		{operation: "create-key", mediaType: jsonType, status: 201, body: `{"service":"ops","name":"the monitor","scopes":["publish"]}`},
		{operation: "list-sign-ins", status: 200},
		{operation: "end-sign-in", parameter: with("id", "sin-k3j5h2m7q4r6"), status: 404},
		{operation: "list-keys", status: 200},
		{operation: "get-key", parameter: with("id", "key-2"), status: 200},
		{operation: "change-key", parameter: with("id", "key-2"), mediaType: httpio.MergePatch, status: 200, body: `{"name":"the new monitor","scopes":["publish","read"]}`},
		{operation: "rotate-key", parameter: with("id", "key-2"), mediaType: jsonType, status: 200, body: `{"grace":3600}`},

		{operation: "create-subscriber", mediaType: jsonType, status: 201,
			body: `{"addresses":[{"kind":"mail","address":"grace@example.com"}],"time_zone":"America/New_York"}`},
		{operation: "create-subscriber", mediaType: httpio.NDJSON, status: 200,
			body: `{"id":"paul","addresses":[{"kind":"mail","address":"paul@example.com"}],"locale":"fr"}` + "\n" +
				`{"addresses":[{"kind":"mail","address":"ruth@example.com"}]}` + "\n"},
		{operation: "put-subscriber", parameter: with("id", "mary"), mediaType: jsonType, status: 201,
			body: `{"addresses":[{"kind":"mail","address":"mary@example.com","label":"home"},{"kind":"mail","address":"mary@example.net"}],"locale":"en-GB","attributes":{"floor":3}}`},
		{operation: "get-subscriber", parameter: with("id", "mary"), status: 200},
		{operation: "patch-subscriber", parameter: with("id", "mary"), mediaType: httpio.MergePatch, status: 200, body: `{"attributes":{"floor":4},"locale":null}`},
		{operation: "list-subscribers", parameter: with("address", "mary@example.net"), status: 200},
		{operation: "put-mailbox", parameter: with("address", "john@example.com"), status: 201},
		{operation: "list-mailboxes", parameter: with("limit", "10"), status: 200},
		{operation: "get-mailbox", parameter: with("address", "john@example.com"), status: 200},
		{operation: "change-mailbox", parameter: with("address", "john@example.com"), mediaType: httpio.MergePatch, status: 200, body: `{"max_bytes":1000000000}`},
		{operation: "put-mailbox-alias", parameter: with("address", "john@example.com", "alias", "sales@example.com"), status: 201},
		{operation: "list-mailbox-aliases", parameter: with("address", "john@example.com"), status: 200},
		{operation: "delete-mailbox-alias", parameter: with("address", "john@example.com", "alias", "sales@example.com"), status: 204},
		{operation: "get-mailbox-search-index", status: 200},
		{operation: "reindex-mailbox", parameter: with("address", "john@example.com"), status: 200},
		{operation: "reindex-all-mailboxes", status: 200},
		{operation: "import-mailbox", parameter: with("address", "john@example.com"), mediaType: httpio.NDJSON, status: 200,
			body: `{"type":"mail","mail":{"address":"john@example.com","folder":"Archive/2026","received_at":"2026-11-20T12:00:00Z","flags":["seen","work"],"content":"U3ViamVjdDogaGVsbG8NCg0KSGVsbG8gSm9obg0K"}}` + "\n"},
		{operation: "export-mailbox", parameter: with("address", "john@example.com"), status: 200},
		{operation: "delete-mailbox", parameter: with("address", "john@example.com"), status: 204},
		{operation: "create-app-password", parameter: with("address", "mary@example.com"), mediaType: jsonType, status: 201, body: `{"name":"phone"}`},
		{operation: "get-mailbox-dns", parameter: with("domain", "example.com"), status: 200},
		{operation: "create-mailbox-token", parameter: with("address", "mary@example.com"), mediaType: jsonType, status: 201, body: `{"origins":["https://app.example.com"],"lifetime":"15m"}`},
		{operation: "list-app-passwords", parameter: with("address", "mary@example.com"), status: 200},
		{operation: "revoke-app-password", parameter: with("address", "mary@example.com", "id", "app-1"), status: 204},
		{operation: "put-subscriptions", mediaType: jsonType, status: 201, body: `{"topic":"load","channel":"email","subscriber":"mary","consent":{"terms":"https://example.org/terms/3","source":"shop, order 1815","at":"2026-11-20T08:15:00Z"}}`},
		{operation: "put-subscriptions", mediaType: jsonType, status: 201,
			body: `{"topic":"load","channel":"email","to":"ada@example.com","filter":"event.percent > 90"}`},
		{operation: "put-subscriptions", mediaType: httpio.NDJSON, status: 200,
			body: `{"id":"ben-load","topic":"load","channel":"email","to":"ben@example.com","rule":"above","params":{"percent":95}}` + "\n" +
				`{"id":"eve-load","topic":"load","channel":"email","to":"eve@example.com"}` + "\n"},
		{operation: "put-subscription", parameter: with("id", "ada-load"), mediaType: jsonType, status: 201,
			body: `{"topic":"load","channel":"email","to":"ada@example.com","rule":"above","params":{"percent":80},"locale":"en-GB"}`},
		{operation: "put-subscription", parameter: with("id", "ada-daily"), mediaType: jsonType, status: 201,
			body: `{"topic":"load","channel":"email","to":"ada@example.com","cadence":"daily 08:00","time_zone":"Europe/London"}`},
		{operation: "get-subscription", parameter: with("id", "ada-load"), status: 200},
		{operation: "pause-subscription", parameter: with("id", "eve-load"), status: 204},
		{operation: "list-subscriptions", parameter: with("topic", "load", "state", "paused"), status: 200},
		{operation: "resume-subscription", parameter: with("id", "eve-load"), status: 204},
		{operation: "list-subscriptions", parameter: with("topic", "load", "state", "active"), status: 200},

		{operation: "send-message", parameter: with("wait", "1s"), mediaType: jsonType, status: 201,
			body: `{"channel":"email","to":"ada@example.com","content":{"subject":"Your code is {{ event.code }}","text":"It is valid for {{ event.minutes }} minutes."},` +
				`"data":{"code":"483 201","minutes":10},"reference":"login-17"}`},
		{operation: "send-message", mediaType: jsonType, status: 201,
			body: `{"channel":"email","content":{"subject":"{{ event.what }}","text":"Hello {{ sub.name }}"},"data":{"what":"Works on Sunday"},"reference":"works-1",` +
				`"recipients":[{"to":"ben@example.com","data":{"name":"Ben"}},{"to":"eve@example.com","data":{"name":"Eve"}}]}`},
		{operation: "try-message", mediaType: jsonType, status: 200,
			body: `{"channel":"email","to":"ada@example.com","content":{"subject":"Works","text":"On Sunday."}}`},
		{operation: "get-message", parameter: with("id", "msg-20261120-1001"), status: 200},
		{operation: "list-messages", parameter: with("reference", "works-1"), status: 200},

		{operation: "publish", parameter: with("topic", "load"), mediaType: jsonType, status: 202, body: `{"host":"db1","percent":97}`},
		{operation: "publish", parameter: with("topic", "load"), mediaType: httpio.CloudEvent, status: 202,
			body: `{"specversion":"1.0","id":"db2-1","source":"/monitor","type":"load","data":{"host":"db2","percent":85}}`},
		{operation: "publish", parameter: with("topic", "load"), mediaType: httpio.NDJSON, status: 202,
			body: `{"host":"db3","percent":12}` + "\n" + `{"host":"db4","percent":99}` + "\n"},
		{operation: "publish-by-type", mediaType: httpio.CloudEvent, status: 202,
			body: `{"specversion":"1.0","id":"db5-1","source":"/monitor","type":"load","subject":"db5","time":"2026-11-20T08:15:00Z","data":{"host":"db5","percent":91}}`},
		{operation: "publish-by-type", mediaType: httpio.CloudEventBatch, status: 202,
			body: `[{"specversion":"1.0","id":"db6-1","source":"/monitor","type":"load","data":{"host":"db6","percent":50}},` +
				`{"specversion":"1.0","id":"db6-2","source":"/monitor","type":"load","data":{"host":"db6","percent":60}}]`},

		{operation: "get-event", parameter: with("id", "evt-20261120-1001"), status: 200},
		{operation: "list-deliveries", parameter: with("id", "evt-20261120-1001"), status: 200},
		{operation: "list-events", parameter: with("topic", "load", "lane", "normal"), status: 200},
		{operation: "get-delivery", parameter: with("id", "dlv-20261120-40041-0"), status: 200},
		{operation: "list-broadcasts", parameter: with("limit", "10"), status: 200},
		{operation: "list-history", parameter: with("subscriber", "ada@example.com"), status: 200},
		{operation: "explain-event", parameter: with("id", "ada-load", "event", "evt-20261120-1001"), status: 200},
		{operation: "explain-data", parameter: with("id", "ada-load"), mediaType: jsonType, status: 200, body: `{"host":"db1","percent":70}`},

		{operation: "test-condition", parameter: with("topic", "load"), mediaType: jsonType, status: 200, body: `{"condition":"event.percent > 90 && event.host.startsWith('db')","data":{"host":"db1","percent":97}}`},
		{operation: "test-condition", parameter: with("topic", "load"), mediaType: jsonType, status: 200, body: `{"rule":"above","params":{"percent":90},"data":{"host":"db1","percent":70}}`},
		{operation: "match-event", parameter: with("topic", "load"), mediaType: jsonType, status: 200, body: `{"host":"db1","percent":97}`},
		{operation: "match-event", parameter: with("topic", "load", "audience_filter", "subscriber.locale == 'en'"), mediaType: jsonType, status: 200, body: `{"host":"db1","percent":97}`},
		{operation: "match-event", parameter: with("topic", "load", "sample", "0", "lane", "urgent"), mediaType: httpio.CloudEvent, status: 200,
			body: `{"specversion":"1.0","id":"db2-2","source":"/monitor","type":"load","data":{"host":"db2","percent":85}}`},
		{operation: "report-conditions", status: 200},
		{operation: "list-states", parameter: with("topic", "load"), status: 200},
		{operation: "put-channel", parameter: with("channel", "hook"), mediaType: jsonType, status: 201, body: `{"driver":"webhook"}`},
		{operation: "get-secret", parameter: with("channel", "hook", "to", "https://receiver.example.org/load"), status: 200},
		{operation: "get-state", parameter: with("topic", "load", "key", "db1"), status: 200},
		{operation: "preview-template", parameter: with("template", "load"), mediaType: jsonType, status: 200, body: `{"data":{"host":"db1","percent":97},"to":"ada@example.com"}`},
		{operation: "lint-template", parameter: with("template", "load"), mediaType: jsonType, status: 200, body: `{"template":{"subject":"{{ event.host }}","html":"<p>It is full. <img src=\"https://example.com/disk.png\"></p>"}}`},

		{operation: "get-status", status: 200},
		{operation: "follow-status", parameter: with("once", "true"), status: 200},
		{operation: "get-rates", parameter: with("step", "5m"), status: 200},
		{operation: "list-nodes", status: 200},
		{operation: "pause", mediaType: jsonType, status: 204, body: `{"scope":{"kind":"channel","name":"ops/email"},"reason":"the relay is being moved"}`},
		{operation: "resume", mediaType: jsonType, status: 204, body: `{"scope":{"kind":"channel","name":"ops/email"}}`},
		{operation: "set-rate", mediaType: jsonType, status: 204, body: `{"scope":{"kind":"channel","name":"ops/email"},"rate":"500/s"}`},
		{operation: "set-rate", mediaType: jsonType, status: 204, body: `{"scope":{"kind":"channel","name":"ops/email"},"rate":"configured"}`},
		{operation: "approve", mediaType: jsonType, status: 409, body: `{"event":"evt-20261120-1001"}`},
		{operation: "cancel", mediaType: jsonType, status: 204, body: `{"scope":{"kind":"broadcast","name":"evt-20261120-1001"},"reason":"a false alarm"}`},
		{operation: "recall-broadcast", parameter: with("id", "evt-20261120-1001"), status: 409},
		{operation: "put-expiry", parameter: with("id", "evt-20261120-1001"), mediaType: jsonType, status: 409, body: `{"at":"2026-12-24T18:00:00Z"}`},
		{operation: "list-destinations", parameter: with("channel", "email"), status: 200},
		{operation: "resume-destination", parameter: with("channel", "email", "destination", "mail.example.net"), status: 404},
		{operation: "list-parked", status: 200},
		{operation: "list-audit", parameter: with("kind", "key", "action", "rotate"), status: 200},
		{operation: "retry-parked", parameter: with("id", "prk-20261120-1"), status: 404},
		{operation: "drop-parked", parameter: with("id", "prk-20261120-1"), status: 404},

		{operation: "start-task", mediaType: jsonType, status: 201, body: `{"action":"remove-suppressions","filter":{"reason":"soft_bounces"},"reason":"the mail servers work again"}`},
		{operation: "list-tasks", status: 200},
		{operation: "get-task", parameter: with("id", "tsk-644a4e2bc8f10"), status: 200},
		{operation: "cancel-task", parameter: with("id", "tsk-1"), status: 404},

		{operation: "list-captured", parameter: with("channel", "archive", "subject", "load"), status: 200},
		{operation: "get-captured", parameter: with("id", "dlv-20261120-40041-17"), status: 404},
		{operation: "show-captured-html", parameter: with("id", "dlv-20261120-40041-17"), status: 404},
		{operation: "get-captured-source", parameter: with("id", "dlv-20261120-40041-17"), status: 404},
		{operation: "get-captured-attachment", parameter: with("id", "dlv-20261120-40041-17", "number", "1"), status: 404},
		{operation: "delete-captured", parameter: with("id", "dlv-20261120-40041-17"), status: 404},
		{operation: "clear-captured", status: 204},
		{operation: "take-backup", parameter: with("rate", "20000000"), status: 200},
		{operation: "get-restored", status: 404},
		{operation: "start-move", mediaType: jsonType, status: 503, body: `{"to":"postgres://fanfare@127.0.0.1:1/fanfare"}`},
		{operation: "get-move", status: 404},
		{operation: "stop-move", status: 204},

		{operation: "take-receipt", parameter: with("service", "ops", "channel", "email"), mediaType: jsonType, status: 404,
			body: `{"delivery":"dlv-20261120-40041-17","kind":"failed","class":"invalid","status":"5.1.1","text":"550 5.1.1 User unknown","time":"2026-11-20T12:00:00Z"}`},
		{operation: "show-unsubscribe", parameter: with("token", "from-a-message"), status: 404},
		{operation: "unsubscribe", parameter: with("token", "from-a-message"), status: 404},
		{operation: "show-undo", parameter: with("token", "from-a-page"), status: 404},
		{operation: "undo-unsubscribe", parameter: with("token", "from-a-page"), status: 404},
		{operation: "show-signup", parameter: with("service", "ops", "topic", "load"), status: 200},
		{operation: "send-signup", parameter: with("service", "ops", "topic", "load"), status: 200},
		{operation: "show-confirmation", parameter: with("token", "from-a-message"), status: 404},
		{operation: "confirm", parameter: with("token", "from-a-message"), status: 404},
		{operation: "show-preferences", parameter: with("token", "from-a-message"), status: 404},
		{operation: "change-preferences", parameter: with("token", "from-a-message"), status: 404},
		{operation: "show-move", parameter: with("token", "from-a-message"), status: 404},
		{operation: "confirm-move", parameter: with("token", "from-a-message"), status: 404},
		{operation: "show-mail-programs", parameter: with("token", "from-a-message"), status: 404},
		{operation: "change-mail-programs", parameter: with("token", "from-a-message"), status: 404},
		{operation: "sign-up", mediaType: jsonType, status: 204,
			body: `{"topic":"load","channel":"email","to":"ruth@example.com","rule":"above","params":{"percent":90},"terms":"https://example.org/terms/3","source":"the form in our app"}`},
		{operation: "list-consents", parameter: with("id", "mary"), status: 200},
		{operation: "end-subscription", parameter: with("id", "ada-load", "reason", "requested by phone"), status: 204},
		{operation: "export-subscriber", parameter: with("id", "mary"), status: 200},
		{operation: "put-subscriber", parameter: with("id", "mary-at-work"), mediaType: jsonType, status: 201, body: `{"addresses":[{"kind":"mail","address":"mary@work.example"}]}`},
		{operation: "merge-subscriber", parameter: with("id", "mary-at-work"), mediaType: jsonType, status: 200, body: `{"into":"mary"}`},
		{operation: "delete-subscriber", parameter: with("id", "mary"), status: 204},
		{operation: "erase-subscriber", parameter: with("id", "mary"), mediaType: jsonType, status: 200, body: `{"suppress":true}`},
		{operation: "get-suppression", parameter: with("address", "mary@example.net"), status: 200},
		{operation: "lift-suppression", parameter: with("address", "mary@example.net"), status: 204},
		{operation: "suppress", mediaType: jsonType, status: 200, body: `{"address":"gone@example.net","reason":"hard_bounce","source":"the old system"}`},
		{operation: "import-suppressions", mediaType: httpio.NDJSON, status: 200, body: `{"address":"gone@example.net","reason":"hard_bounce"}` + "\n" + `{"address":"angry@example.net","reason":"complaint","until":"2036-01-01T00:00:00Z"}` + "\n"},
		{operation: "list-suppressions", parameter: with("reason", "complaint"), status: 200},
		{operation: "delete-key", parameter: with("id", "key-2"), status: 204},
	}
}
