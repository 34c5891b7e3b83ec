package arch

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A grant lists the packages of this module that a package may import, as paths
// from the root of the module ("." is the root package). A row holds for its
// folder and those below that have no row of their own; "x/..." grants x and
// all below it. A folder may always import itself and what lies below it.
type grant struct {
	dir string
	may []string
	why string
}

// grants is the whole dependency direction: cmd -> server -> stages, api, drivers
// -> contracts -> root. A package without a row may not exist.
var grants = []grant{
	{".", nil,
		"the root package is the vocabulary: everybody imports it, so it imports nobody"},
	{"client", []string{".", "internal/httpapi/wire"},
		"the client is for programs of others; it knows the words and the shapes on the wire, which it names anew, and nothing else inside"},
	{"client/session", []string{".", "client", "client/internal/stream", "internal/httpapi/wire", "internal/session/frame", "internal/session/websocket"},
		"the client of sessions opens them by the API, and speaks the session protocol"},
	{"client/worker", []string{".", "client", "client/internal/stream", "internal/httpapi/wire", "internal/session/frame", "internal/session/websocket"},
		"an instance of a worker speaks the session protocol"},
	{"client/internal/stream", []string{".", "client", "internal/httpapi/wire", "internal/session/frame", "internal/session/websocket"},
		"clients and instances connect in the same way"},
	{"examples", []string{".", "client", "client/session", "client/worker"},
		"an example shows what a user can do, and a user has only the client and its packages"},
	{"cmd/fanfare", []string{".", "client", "client/session", "internal/cli/bulkfile", "internal/cli/mailfile", "internal/cli/process", "internal/cli/terminal", "internal/server", "internal/admin/backup", "internal/admin/doctor/deep", "internal/admin/doctor/probe", "internal/admin/migrate", "internal/datadir", "internal/bench", "internal/bench/harness", "internal/bench/report", "internal/compat/notifybc/settings", "internal/config", "internal/demo", "internal/mail/dkim", "internal/admin/doctor", "internal/mail/reply", "internal/sink", "internal/pipeline/deliver/driver", "internal/catalog", "internal/catalog/document", "internal/session", "internal/session/agent", "internal/session/frame", "internal/session/websocket", "internal/signin/oidc", "internal/compat/notifybc/importer", "internal/compat/notifybc/mongoexport"},
		"apply reads its document as the server does, to name a mistake with its line; else: a command turns flags and signals into calls; what it calls is server, the API's client or a tool"},
	{"internal/cli/terminal", nil,
		"text for people comes with the call"},
	{"internal/cli/bulkfile", []string{".", "client", "internal/cli/terminal"},
		"a file becomes requests of the client; the command sends them"},
	{"internal/cli/mailfile", []string{"."},
		"files of other mail programs are read and written without the server"},
	{"internal/cli/process", nil,
		"the garbage collector and the profile know nothing of notifications"},

	{"internal/pipeline/deliver/limit", nil,
		"limits are arithmetic: the caller passes the time and the replies"},
	{"internal/mail/mx", nil,
		"whose exchangers take the mail of a domain is asked of the DNS; what follows from it is the business of who asks"},
	{"internal/admin/mailboxes", []string{".", "internal/httpapi", "internal/httpapi/wire", "internal/catalog", "internal/mail/address", "internal/mail/recipients", "internal/mailbox", "internal/people"},
		"operators manage mailboxes without a protocol of mail programs"},
	{"internal/signin/guesslimit", []string{"."},
		"wrong logins are counted without knowing what the password opens"},
	{"internal/compat/notifybc", []string{".", "internal/catalog", "internal/catalog/document", "internal/clock", "internal/httpapi/httpio", "internal/jmespath", "internal/people", "internal/pipeline/ingest", "internal/pipeline/ingest/messages", "internal/render", "internal/store/control", "internal/mail/bounce"},
		"the API of NotifyBC is a translation onto subscriptions, events and messages"},
	{"internal/compat/notifybc/settings", []string{".", "internal/compat/notifybc/codes", "internal/jmespath"},
		"settings are plain values; the expressions in them are checked when they are read"},
	{"internal/compat/notifybc/tokens", []string{".", "internal/render"},
		"tokens are replaced in texts without knowing where the values come from; the test renders the Liquid that they become"},
	{"internal/compat/notifybc/codes", nil,
		"a code follows from a regular expression and chance"},
	{"internal/compat/notifybc/resource", []string{"internal/clock", "internal/compat/notifybc/query", "internal/compat/notifybc/roles", "internal/store/control"},
		"records of the API are stored in one way, whatever they are about"},
	{"internal/compat/notifybc/accounts", []string{".", "internal/clock", "internal/compat/notifybc/query", "internal/compat/notifybc/resource", "internal/compat/notifybc/resource/resourcetest", "internal/compat/notifybc/roles", "internal/mail/address", "internal/signin/guesslimit", "internal/store/control"},
		"administrators are records with passwords; their roles are decided by who they are"},
	{"internal/compat/notifybc/resource/resourcetest", []string{"internal/compat/notifybc/resource", "internal/compat/notifybc/roles"},
		"a test sends requests to routes, whatever they are about"},
	{"internal/compat/notifybc/configurations", []string{"internal/clock", "internal/compat/notifybc/resource", "internal/compat/notifybc/resource/resourcetest", "internal/compat/notifybc/settings"},
		"configurations are records over the settings of the file"},
	{"internal/compat/notifybc/bounces", []string{"internal/clock", "internal/compat/notifybc/resource", "internal/compat/notifybc/resource/resourcetest", "internal/compat/notifybc/roles", "internal/store/control"},
		"bounces are records that count; suppressions are the business of people"},
	{"internal/compat/notifybc/health", []string{"internal/compat/notifybc/resource", "internal/compat/notifybc/resource/resourcetest", "internal/compat/notifybc/roles"},
		"the parts that are checked come with the call"},
	{"internal/compat/notifybc/jsonobject", nil,
		"an object is split without knowing what its members mean"},
	{"internal/compat/notifybc/mongoexport", []string{"internal/compat/notifybc/jsonobject"},
		"a file is read without knowing what its documents become"},
	{"internal/compat/notifybc/importer", []string{".", "internal/compat/notifybc/accounts", "internal/compat/notifybc/bounces", "internal/compat/notifybc/configurations", "internal/compat/notifybc/mongoexport", "internal/compat/notifybc/resource", "internal/compat/notifybc/roles", "internal/store/control"},
		"documents become records of the packages that own them"},
	{"internal/compat/notifybc/roles", []string{"internal/jmespath"},
		"a role follows from a request, the named proxies and tokens, which are looked up behind an interface"},
	{"internal/mailbox/apppassword", []string{".", "internal/clock", "internal/mail/address", "internal/mailbox", "internal/signin/guesslimit"},
		"a login finds the account of a name; the protocols pass on its messages"},
	{"internal/mail/mimetree", nil,
		"the parts of a message follow from its bytes alone"},
	{"internal/mail/linktoken", nil,
		"a pass is bytes under a seal: what they mean is the business of who seals"},
	{"internal/people/pages/words", nil,
		"texts are known to who writes pages, and to who reads what a service says instead"},
	{"internal/people/pages", []string{"internal/people/pages/words"},
		"what stands on a page comes with the call: the looks are apart from what they are about"},
	{"internal/clock", nil, whyBasic},
	{"internal/failpoint", nil, whyBasic},
	{"internal/durablefile", nil, whyBasic},
	{"internal/checksum", []string{"."}, whyBasic},
	{"internal/background", nil, whyBasic},
	{"internal/progress", nil, whyBasic},
	{"internal/pipeline/deliver/fairqueue", nil,
		"turns are taken without knowing what waits or whose it is"},
	{"internal/config", []string{"."},
		"configuration is plain values; who uses them imports config, never the other way round"},
	{"internal/bus", []string{"."},
		"the bus carries values of the root package and does not know who sends or takes them"},
	{"internal/store", []string{"."},
		"the contract between what is kept and the databases knows the words and nothing of either side"},
	{"internal/store/control", []string{".", "internal/store", "internal/catalog/audit", "internal/people/suppression"}, whyKept},
	{"internal/store/deliveries", []string{".", "internal/store"}, whyKept},
	{"internal/store/sqlite", []string{".", "internal/store"}, whyDatabase},
	{"internal/store/postgres", []string{".", "internal/store"}, whyDatabase},
	{"internal/test/powerloss/disk", nil,
		"it simulates a disk for tests of every layer"},
	{"internal/test/powerloss/mount", []string{"internal/test/powerloss/disk"},
		"it mounts a simulated disk"},
	{"internal/test/dnstest", nil,
		"a DNS for tests knows what it is told"},
	{"internal/store/storetest", []string{".", "internal/store", "internal/store/...", "internal/pipeline/plan", "internal/test/pgtest"},
		"the suite has every driver keep the same promises"},
	{"internal/store/move", []string{".", "internal/store"},
		"a move copies from one database to another, and knows neither"},
	{"internal/cluster", []string{".", "internal/httpapi/httpio", "internal/httpapi/problem", "internal/store/postgres"},
		"a node knows the other nodes and who leads; what a leader runs is the business of the server"},
	{"internal/test/pgtest", []string{"."},
		"a PostgreSQL for tests is started as what it is: a program of others"},
	{"internal/test/pgtest/with", []string{"internal/test/pgtest", "internal/store/postgres"},
		"the command that starts one for others"},

	{"internal/pipeline/ingest", []string{".", "internal/pipeline/eventgroup"}, whyStage},
	{"internal/compat/notifybc/query", nil,
		"a query is applied to decoded records; where they come from is the business of the caller"},
	{"internal/jmespath", nil,
		"a filter is evaluated on decoded JSON; where the data comes from is the business of the caller"},
	{"internal/condition/lang", []string{".", "internal/jmespath"},
		"the language is text, syntax trees and schemas: it knows neither events nor the index"},
	{"internal/condition/expr", []string{".", "internal/condition/assert", "internal/condition/lang", "internal/jmespath"},
		"predicates are evaluated on an event and the params of a row; which rows those are is the business of the index"},
	{"internal/condition/ngram", []string{"internal/condition/assert"},
		"an index of texts knows nothing of conditions"},
	{"internal/condition/explain", []string{".", "internal/condition/expr", "internal/condition/lang"},
		"an explanation evaluates one condition without the index"},
	{"internal/condition", []string{".", "internal/condition/..."}, whyStage},
	{"internal/pipeline/match/topicstate", []string{"."}, whyStage},
	{"internal/condition/evaluator", nil,
		"the evaluator decides conditions a second time: sharing code with the index that it checks would hide the same mistake twice"},
	{"internal/test/mutation", nil,
		"it changes the text of another package and runs its tests, and knows neither"},
	{"internal/condition/conditiontest", []string{".", "internal/condition/evaluator", "internal/condition"},
		"it compares the two implementations of the language, and belongs to neither"},
	{"internal/pipeline/match/verify", []string{".", "internal/condition/evaluator", "internal/condition"},
		"a match is checked by the evaluator, which knows nothing of the index; who stores what follows is the business of server"},
	{"internal/pipeline/plan", []string{"."}, whyStage},
	{"internal/pipeline/compose", []string{".", "internal/pipeline/deliver/driver", "internal/mail/mimetree", "internal/mail/signedlink", "internal/render", "internal/render/mime", "internal/store/deliveries", "internal/catalog", "internal/people", "internal/people/registry"},
		"dispatch, transactional messages and the preview prepare messages in one way; it reads configuration and files, and knows no stage"},
	{"internal/mail/dkimkeys", []string{".", "internal/datadir", "internal/mail/dkim", "internal/catalog"},
		"the keys of channels are configured in the registry and sign by dkim; how mail is sent is the business of others"},
	{"internal/pipeline/deliver/channels", []string{".", "internal/pipeline/deliver", "internal/pipeline/deliver/...", "internal/httpapi/wire", "internal/mail/dkim", "internal/mail/dkimkeys", "internal/mail/mx", "internal/mail/address", "internal/mail/reply", "internal/store/deliveries", "internal/store/retry", "internal/catalog", "internal/people/registry"},
		"it makes the drivers of the configured channels, so it names them all; it answers the API in its types, and receives dispatch loops as a function"},
	{"internal/pipeline/dispatch", []string{".", "internal/bus", "internal/cache", "internal/httpapi/wire", "internal/mail/address", "internal/mail/dkim", "internal/mail/dkimkeys", "internal/mail/mx", "internal/mail/signedlink", "internal/pipeline/compose", "internal/pipeline/deliver", "internal/pipeline/deliver/driver", "internal/pipeline/deliver/fairqueue", "internal/pipeline/plan", "internal/render", "internal/render/mime", "internal/schedule/quiethours", "internal/store/deliveries", "internal/store/retry", "internal/catalog", "internal/people", "internal/people/registry", "internal/people/suppression"},
		"dispatch takes leases from the bus and gives jobs to a sender of deliver; of plan it knows the sizes of batches; who pauses broadcasts and who records is passed in"},
	{"internal/mail/clientconfig", nil,
		"the servers that mail programs find are host names and ports"},
	{"internal/people/selfservice", []string{".", "internal/catalog/audit", "internal/mail/clientconfig", "internal/mailbox", "internal/httpapi/recipientpages", "internal/httpapi/wire", "internal/mail/signedlink", "internal/people/pages", "internal/people/pages/words", "internal/mail/linktoken", "internal/catalog", "internal/people", "internal/people/registry"},
		"the pages of recipients seal links, store by the registry, and answer in the types of the API"},
	{"internal/notifier", []string{".", "internal/pipeline/ingest", "internal/store/control", "internal/store/deliveries", "internal/store/retry", "internal/people", "internal/people/registry"},
		"the notifier reads what the recorder and the registry stored and posts events as any sender does"},
	{"internal/store/retry", []string{".", "internal/store"},
		"work is repeated while the database is away, whatever the work is"},
	{"internal/pipeline/eventgroup", []string{"."},
		"the encoding of EVENTS is shared by intake, which writes it, and by everybody who reads it"},
	{"internal/pipeline/match/replica", []string{".", "internal/cluster/link", "internal/condition"},
		"copies of the index get its changes and answer events; what is done with the hits is the business of match"},
	{"internal/pipeline/match", []string{".", "internal/bus", "internal/condition", "internal/pipeline/deliver/fairqueue", "internal/pipeline/eventgroup", "internal/pipeline/match/...", "internal/pipeline/plan", "internal/store/deliveries", "internal/store/retry", "internal/catalog", "internal/people", "internal/people/registry"},
		"matching reads EVENTS, the index and the catalog, and commits what plan makes of the hits; digests, the recorder and approvals reach it as interfaces"},
	{"internal/admin/inspect", []string{".", "internal/admin/report", "internal/condition", "internal/config", "internal/httpapi/wire", "internal/pipeline/match", "internal/pipeline/match/...", "internal/pipeline/plan", "internal/store/deliveries", "internal/catalog", "internal/people", "internal/people/registry"},
		"questions about matching are answered by matching itself, in the types of the API"},
	{"internal/pipeline/due", []string{".", "internal/pipeline/plan", "internal/store/deliveries", "internal/store/retry"},
		"work that is due is read from the store, cut into batches and published; whoever postponed it is not known here"},
	{"internal/store/maintain", []string{".", "internal/pipeline/match/topicstate", "internal/progress", "internal/store/control", "internal/store/deliveries", "internal/store/retry"},
		"the loops read and write the tables and the states in memory; what is open is a function that they get"},
	{"internal/pipeline/digest", []string{".", "internal/schedule/cadence", "internal/pipeline/plan", "internal/progress", "internal/store/deliveries"},
		"what waits for a digest stands between matching, generation and the record, and knows neither the registry nor the bus"},
	{"internal/render", []string{".", "internal/mail/address", "internal/mail/signedlink", "internal/render/locale", "internal/render/bodies", "internal/render/jsonschema", "internal/render/liquid", "internal/render/notifytext", "internal/render/mime", "internal/pipeline/deliver/driver"}, whyStage},
	{"internal/render/liquid", []string{".", "internal/render/bodies", "internal/render/jsonschema", "internal/render/locale", "internal/render/notifytext"}, "a part of a template is compiled and rendered without knowing messages or recipients"},
	{"internal/render/jsonschema", []string{"."}, "a schema is read without knowing templates"},
	{"internal/render/mime", []string{".", "internal/mail/address"}, "the bytes of headers, bodies and files do not depend on templates or recipients"},
	{"internal/mail/address", []string{"."}, "an address is checked by its syntax alone"},
	{"internal/mail/signedlink", []string{"."}, "a signed link contains all that it stands for"},
	{"internal/compat/notify/files", []string{".", "internal/clock", "internal/filetype", "internal/httpapi/httpio", "internal/people/pages", "internal/store/control"},
		"a file behind a link is stored and shown without the messages that contain the link"},
	{"internal/render/notifytext", nil, "a text with the values of a person follows from both alone"},
	{"internal/render/bodies", []string{".", "internal/render/notifytext"}, "what is made of a template when it is compiled needs nothing of messages"},
	{"internal/render/lint", []string{"internal/render/bodies"}, "what readers will mind of a template is judged by its text alone"},
	{"internal/pipeline/deliver/driver", []string{"."},
		"the contract between the queue of a channel and its drivers knows the public types and neither side"},
	{"internal/pipeline/deliver", []string{".", "internal/pipeline/deliver/fairqueue", "internal/pipeline/deliver/limit"},
		"stages do not import each other; the drivers implement the contract in driver and do not import each other"},
	{"internal/pipeline/deliver/smtp", []string{".", "internal/pipeline/deliver/driver"}, whyDriver},
	{"internal/pipeline/deliver/capture", []string{".", "internal/pipeline/deliver/driver"}, whyDriver},
	{"internal/pipeline/deliver/file", []string{".", "internal/pipeline/deliver/driver"}, whyDriver},
	{"internal/pipeline/deliver/worker", []string{".", "internal/pipeline/deliver/driver"}, whyDriver},
	{"internal/session/call", []string{".", "internal/session", "internal/session/frame"},
		"it is a client of the broker inside the server; who calls it is the business of server"},
	{"internal/pipeline/deliver/webhook", []string{".", "internal/pipeline/deliver/driver"}, whyDriver},
	{"internal/session", []string{"internal/session/frame"},
		"the terms of sessions are plain values, and the contract between the broker and its log"},
	{"internal/session/agentmessage", []string{"internal/session"},
		"the messages of agents are data that both sides name"},
	{"internal/session/agent", []string{".", "internal/inputerror", "internal/session", "internal/session/agentmessage"},
		"an agent decides by its local file alone, and knows nothing of brokers; how it connects is passed in"},
	{"internal/session/fleet", []string{".", "internal/session", "internal/session/agent", "internal/session/agentmessage"},
		"the hub compares the demand with what agents report, and gets both as values; its tests run a real agent"},
	{"internal/mailbox/delta", nil, "the difference of two texts does not depend on what they are"},
	{"internal/mailbox/searchfilter", nil, "a filter is made of texts and asked for texts; which texts a message has is the business of the protocols"},
	{"internal/mailbox/hints", []string{"internal/mailbox"}, "what carries the messages between nodes is given to it"},
	{"internal/mailbox", []string{".", "internal/clock", "internal/mailbox/delta", "internal/mailbox/searchfilter", "internal/mail/mimetree", "internal/store", "internal/store/retry"},
		"mailboxes are stored without knowing the protocols that show them, or the pipeline that fills them"},
	{"internal/pipeline/deliver/simulate", []string{".", "internal/pipeline/deliver/driver"},
		"a simulated delivery follows from the address alone"},
	{"internal/compat/notify", []string{"internal/notifier", "internal/httpapi", ".", "internal/catalog", "internal/catalog/state", "internal/clock", "internal/compat/notify/...", "internal/httpapi/wire", "internal/mail/address", "internal/mail/reply", "internal/pipeline/deliver/driver", "internal/render/liquid", "internal/render/notifytext", "internal/store/deliveries"},
		"the API for clients of another system translates its requests to messages, templates and channels; it has no pipeline and no store of its own"},
	{"internal/compat/notify/token", nil, "a signature is checked with the keys of the caller alone"},
	{"internal/compat/notify/notificationid", []string{"."}, "an id follows from the message and the key of the server"},
	{"internal/pipeline/deliver/inbox", []string{".", "internal/clock", "internal/mailbox", "internal/pipeline/deliver/driver"},
		"the driver stores messages in mailboxes, and knows nothing of the protocols that show them"},
	{"internal/session/sessionlog", []string{".", "internal/session", "internal/session/frame", "internal/store", "internal/store/retry"},
		"sessions are kept by named statements; which database has them is the business of the server"},
	{"internal/session/broker", []string{".", "internal/clock", "internal/httpapi/problem", "internal/session", "internal/session/frame", "internal/session/sessionlog", "internal/store", "internal/store/retry", "internal/store/storetest", "internal/test/pgtest"},
		"the broker is given its connections and its log: it knows neither WebSockets nor databases, except in its tests; its problems look as those of the API"},
	{"internal/session/frame", nil,
		"frames between the broker, clients and instances carry what their users put into them"},
	{"internal/session/websocket", []string{"internal/session", "internal/session/frame"},
		"a connection carries frames; it knows their largest size and the codes of its end"},
	{"internal/cluster/link", nil,
		"frames between two nodes carry what their users put into them"},
	{"internal/pipeline/deliver/remote", []string{".", "internal/cluster/link", "internal/pipeline/deliver/driver"},
		"it passes calls between a queue and a driver on another node; which drivers and nodes there are is passed in"},
	{"internal/pipeline/deliver/delivertest", []string{".", "internal/pipeline/deliver/driver", "internal/pipeline/deliver/remote"},
		"the suite knows the contract in driver; it also runs each driver as if it were on another node"},
	{"internal/signin", []string{".", "internal/catalog", "internal/clock", "internal/store/control", "internal/store/retry"},
		"a sign-in belongs to a key or a person; which keys and roles there are, and where sign-ins are stored, is passed in"},
	{"internal/signin/oidc", []string{".", "internal/catalog", "internal/clock", "internal/signin"},
		"who a person is comes from an issuer; what they may do is the business of sign-ins"},
	{"internal/test/issuer", nil,
		"an OpenID provider for tests shares no code with its clients"},
	{"web/console", nil,
		"files that were built"},
	{"internal/mail/recipients", []string{".", "internal/clock", "internal/mail/address", "internal/mailbox"},
		"who receives the mail to an address follows from mailboxes and domains; both are read by functions that it gets"},
	{"internal/mail/submission", []string{".", "internal/mail/address", "internal/mail/recipients", "internal/mail/mimetree", "internal/mailbox"},
		"a submission is a record of an account, and knows the pipeline as a relay"},
	{"internal/mail/inbound", []string{".", "internal/mail/address", "internal/mail/recipients", "internal/mail/bounce", "internal/mail/mimetree", "internal/mail/submission", "internal/mailbox", "internal/mailbox/apppassword"},
		"mail comes in knowing signed addresses by a function and what follows from it by another; mailboxes and logins are those of their packages"},
	{"internal/imap", []string{".", "internal/imap/...", "internal/mail/mimetree", "internal/mailbox", "internal/mailbox/searchfilter"},
		"a session reads and changes mailboxes; who logs in is checked by a function that it gets"},
	{"internal/imap/view", []string{"internal/mailbox"},
		"snapshots are made of what the store says; sessions are the business of the server above"},
	{"internal/imap/search", []string{"internal/imap/syntax", "internal/mail/mimetree", "internal/mailbox", "internal/mailbox/searchfilter", "internal/test/randommail"},
		"a search decides about one message; which ones there are is the business of the server above"},
	{"internal/imap/content", []string{"internal/imap/syntax", "internal/mail/mimetree"},
		"the items of a message come from its bytes and their structure"},
	{"internal/imap/inflate", nil,
		"decompression knows bytes only"},
	{"internal/imap/syntax", nil,
		"commands and responses are bytes and values: mailboxes are the business of the server above"},
	{"internal/pipeline/record", []string{"."}, whyStage},
	{"internal/schedule/quiethours", nil,
		"when it is quiet is arithmetic over a clock that is told"},
	{"internal/mail/dkim", []string{"."},
		"how mail is signed is arithmetic over bytes and keys: whose they are is the business of server"},
	{"internal/render/locale", nil,
		"how things are written in a language is a table, and knows nothing of messages"},
	{"internal/schedule/cadence", []string{"."},
		"when something is due is arithmetic over a clock that is told"},
	{"internal/filetype", []string{"."},
		"of what type a file is follows from its name and its bytes alone"},
	{"internal/mail/reply", []string{".", "internal/pipeline/deliver/driver"},
		"what an answer means is decided by rules alone: no clock, no state, no other stage"},
	{"internal/mail/bounce", []string{".", "internal/mail/reply", "internal/pipeline/deliver/driver"},
		"what came back is told apart by its text alone: no clock, no state; the words of servers have the meaning that answers have"},
	{"internal/inputerror", []string{"."},
		"errors for wrong input are built from values, without knowing what is checked"},
	{"internal/catalog", []string{".", "internal/config", "internal/session", "internal/store/control", "internal/condition", "internal/schedule/cadence", "internal/schedule/quiethours", "internal/inputerror", "internal/people/addresskind"},
		"the types of the configuration read themselves from records of the control store and know nothing of who changes them"},
	{"internal/catalog/audit", nil,
		"an audit entry is a value: who stores it is the business of the control store"},
	{"internal/catalog/document", []string{".", "internal/config", "internal/session", "internal/session/frame", "internal/mail/address", "internal/mail/dkim", "internal/people/addresskind", "internal/people/pages/words", "internal/schedule/cadence", "internal/schedule/quiethours", "internal/catalog", "internal/inputerror"},
		"a document is read without the configuration that it changes"},
	{"internal/catalog/apply", []string{".", "internal/store/control", "internal/condition", "internal/filetype", "internal/schedule/cadence", "internal/catalog", "internal/catalog/audit", "internal/catalog/document", "internal/inputerror"},
		"a plan is made from a document and a snapshot; the functions that check conditions and templates reach it in its Options"},
	{"internal/catalog/state", []string{".", "internal/store/control", "internal/condition", "internal/catalog", "internal/catalog/apply", "internal/catalog/audit", "internal/catalog/document", "internal/inputerror"},
		"the configuration in force is changed by a Writer that it declares, and it fills the topics of the match index"},
	{"internal/catalog/schema", []string{".", "internal/inputerror"},
		"a schema checks values and knows nothing of topics"},
	{"internal/people", []string{".", "internal/store/control", "internal/schedule/cadence", "internal/catalog", "internal/inputerror"},
		"the types of people check themselves and know nothing of who stores them"},
	{"internal/people/addresskind", nil,
		"the kind of an address follows from a driver or from its spelling"},
	{"internal/people/suppression", []string{".", "internal/inputerror", "internal/people/addresskind"},
		"the suppression list is values and memory: who stores it is the business of the control store"},
	{"internal/people/filtertext", []string{"internal/store/control"},
		"filter texts have numbers and no meaning"},
	{"internal/people/indexload", []string{".", "internal/condition"},
		"entries are inserted by a function of the index"},
	{"internal/people/rawjson", nil,
		"the text of JSON values is read without knowing what the values mean"},
	{"internal/people/placeindex", []string{"."},
		"the indexes map hashes and rows to places and know nothing of what is stored there"},
	{"internal/people/registry", []string{".", "internal/progress", "internal/store/control", "internal/schedule/cadence", "internal/mail/dkim", "internal/filetype", "internal/schedule/quiethours", "internal/condition", "internal/people/pages/words", "internal/catalog", "internal/catalog/apply", "internal/catalog/audit", "internal/catalog/state", "internal/inputerror", "internal/people", "internal/people/addresskind", "internal/people/filtertext", "internal/people/indexload", "internal/people/placeindex", "internal/people/rawjson", "internal/people/suppression"},
		"the registry fills the match index; templates and addresses reach it as functions in its Options"},
	{"internal/admin/report", []string{".", "internal/catalog", "internal/mailbox", "internal/people"},
		"a trace puts names to the numbers of the record, and the names are the registry's; it asks no stage"},

	{"internal/admin/backup", []string{".", "internal/bus", "internal/config", "internal/datadir", "internal/httpapi/wire", "internal/pipeline/eventgroup", "internal/store", "internal/store/database", "internal/store/move", "internal/store/sqlite"},
		"a backup reads the files, the database and the bus of a server"},

	{"internal/httpapi", []string{".", "internal/session", "internal/signin", "internal/signin/oidc", "web/console", "internal/session/frame", "internal/session/websocket", "internal/pipeline/ingest", "internal/admin/report", "internal/people/pages", "internal/mail/address", "internal/mail/clientconfig", "internal/mail/linktoken", "internal/mailbox", "internal/catalog", "internal/catalog/audit", "internal/catalog/document", "internal/catalog/state", "internal/people", "internal/people/suppression"},
		"handlers name the types of the requests they pass on; what they call is an interface that api declares"},
	{"internal/httpapi/wire", []string{"."},
		"the shapes on the wire are data; the client names them too"},
	{"internal/httpapi/statusfeed", []string{".", "internal/httpapi/wire"},
		"a status is passed on to streams without knowing how it is computed"},
	{"internal/httpapi/cloudevents", []string{"."},
		"a CloudEvent is decoded without knowing who sent it"},
	{"internal/httpapi/httpio", []string{".", "internal/catalog/document"},
		"bodies, queries and headers are read without knowing an endpoint"},
	{"internal/httpapi/problem", []string{".", "internal/httpapi/httpio", "internal/httpapi/wire"},
		"an error becomes a problem document without knowing its endpoint"},
	{"internal/httpapi/ndjson", []string{".", "internal/httpapi/httpio", "internal/httpapi/wire"},
		"lines are read and answered without knowing what they mean"},
	{"internal/httpapi/limits", []string{".", "internal/httpapi/httpio"},
		"limits count requests without knowing the endpoints"},
	{"internal/httpapi/openapi", []string{".", "internal/httpapi/httpio", "internal/httpapi/problem"},
		"descriptions and examples complete a document that the handlers began"},
	{"internal/httpapi/listener", []string{".", "internal/httpapi/httpio", "internal/httpapi/problem"},
		"the listener serves any handler and answers alone while the server starts"},
	{"internal/httpapi/recipientpages", []string{".", "internal/catalog", "internal/httpapi/httpio", "internal/mail/linktoken", "internal/people", "internal/people/pages"},
		"the pages act through interfaces that they declare; the handlers of the API register their routes"},
	{"internal/httpapi/templatediff", []string{".", "internal/catalog", "internal/httpapi/wire"},
		"two versions are compared without a request"},
	{"internal/admin/doctor", []string{".", "internal/config", "internal/mail/dkim", "internal/catalog"},
		"the doctor looks from outside: what it asks of a server, a store or a relay reaches it as functions; that a record belongs to a key is the business of dkim"},
	{"internal/sink", []string{"."},
		"the capture server is a tool for measuring: sharing code with what it measures would hide the same mistake twice"},
	{"internal/bench", []string{".", "client"},
		"bench lists the experiments, runs them and compares binaries; what they do is in its subpackages"},
	{"internal/bench/report", []string{"internal/sink"},
		"records and tables know nothing of how a figure came about; a series comes from the summary of a sink"},
	{"internal/bench/loadgen", []string{".", "internal/bench/report"},
		"what an experiment sends is made from numbers and a seed alone; report has the arithmetic of percentiles"},
	{"internal/bench/harness", []string{".", "client", "internal/bench/report", "internal/bench/loadgen", "internal/sink", "internal/store/postgres"},
		"a run starts real processes and uses the server through its API; it knows no experiment and no stage of the server"},
	{"internal/bench/benchtest", []string{".", "internal/bench/harness"},
		"the stand-in for a server is reached as a server is"},
	{"internal/bench/rawlimit", []string{".", "client", "internal/bench/harness", "internal/bench/loadgen", "internal/sink", "internal/bus", "internal/pipeline/deliver/..."},
		"a limit is one library or one part of the product with nothing around it"},
	{"internal/bench/delivery", []string{".", "client", "internal/bench/harness", "internal/bench/loadgen", "internal/bench/rawlimit", "internal/bench/report", "internal/sink", "internal/pipeline/deliver/..."}, whyExperiment},
	{"internal/bench/compat", []string{".", "internal/bench/harness", "internal/bench/loadgen", "internal/bench/report"}, whyExperiment},
	{"internal/bench/console", []string{".", "client", "internal/bench/harness", "internal/bench/loadgen", "internal/bench/report", "internal/sink"}, whyExperiment},
	{"internal/bench/intake", []string{".", "client", "internal/bench/harness", "internal/bench/loadgen", "internal/bench/rawlimit", "internal/bench/report"}, whyExperiment},
	{"internal/bench/mailboxes", []string{".", "client", "internal/bench/harness", "internal/bench/loadgen", "internal/bench/rawlimit", "internal/bench/report"}, whyExperiment},
	{"internal/bench/matching", []string{".", "client", "internal/bench/harness", "internal/bench/loadgen", "internal/bench/rawlimit", "internal/bench/report", "internal/sink", "internal/condition"}, whyExperiment},
	{"internal/bench/nodes", []string{".", "client", "internal/bench/harness", "internal/bench/loadgen", "internal/bench/report", "internal/sink"}, whyExperiment},
	{"internal/bench/pipeline", []string{".", "client", "internal/bench/harness", "internal/bench/loadgen", "internal/bench/rawlimit", "internal/bench/report", "internal/sink", "examples/..."}, whyExperiment},
	{"internal/bench/sessions", []string{".", "client", "client/session", "client/worker", "internal/bench/harness", "internal/bench/loadgen", "internal/bench/report"}, whyExperiment},
	{"internal/bench/rendering", []string{".", "internal/bench/harness", "internal/bench/loadgen", "internal/bench/report", "internal/mail/signedlink", "internal/render"}, whyExperiment},
	{"internal/demo", []string{".", "client", "examples/...", "internal/sink", "internal/server", "internal/store/database", "internal/config", "internal/catalog/document"},
		"the demonstration brings up the whole server and reads the example as apply does; from there on it is a user of the API, and what it can do, every user can"},
	{"internal/test/randommail", nil, "random messages are bytes"},
	{"internal/test/crash", []string{".", "client", "client/worker", "internal/sink", "internal/test/powerloss/disk", "internal/test/powerloss/mount"},
		"the crash test judges the product from outside: what it expects comes from its input files"},
	{"internal/test/chaos", nil,
		"the test of a cluster under faults judges the program from outside: its clients, its relay and its judge share no code with it"},
	{"internal/test/e2e", []string{".", "client", "client/session", "client/worker", "internal/sink"},
		"the tests drive the built program from outside"},
	{"internal/test/docexamples", []string{"internal/render", "internal/render/mime", "."},
		"the examples are run from outside; what they show of templates is rendered as the server does"},
	{"internal/test/receivers", []string{".", "client"},
		"receivers of others judge from outside what the built program sends"},
	{"internal/test/upgrade", []string{".", "internal/sink"},
		"what each release left is judged from outside"},
	{"internal/test/peers", []string{".", "client", "internal/pipeline/deliver/driver", "internal/pipeline/deliver/smtp", "internal/condition/evaluator", "internal/condition/conditiontest"},
		"real mail servers judge the driver, and the whole program, from outside; whom it must tell of real events is for an evaluator that shares nothing with it"},
	{"internal/test/imaporacle", []string{".", "client"},
		"Dovecot judges the IMAP server from outside: what reads and compares the responses shares no code with it"},
	{"internal/jmap/header", []string{"internal/mail/mimetree"},
		"the forms of header fields are read from bytes"},
	{"internal/jmap/compose", []string{"internal/jmap/header"},
		"a message is written from fields and parts; it writes the addresses that header reads"},
	{"internal/jmap/mail", []string{".", "internal/jmap/compose", "internal/jmap/core", "internal/jmap/header", "internal/mail/address", "internal/mail/mimetree", "internal/mail/recipients", "internal/mail/submission", "internal/mailbox", "internal/mailbox/searchfilter", "internal/test/randommail"},
		"the methods read and change mailboxes, and know neither HTTP nor logins"},
	{"internal/jmap", []string{".", "internal/httpapi/httpio", "internal/httpapi/problem", "internal/jmap/...", "internal/mailbox"},
		"JMAP is HTTP with its own logins; bodies and problem documents are those of the API"},
	{"internal/jmap/token", []string{".", "internal/mail/address", "internal/mail/linktoken", "internal/mailbox"},
		"a token names an account, and is sealed as links are"},
	{"internal/jmap/push", []string{".", "internal/jmap/core", "internal/jmap/mail", "internal/mailbox"},
		"changes come from the store, and states are written as the methods write them"},
	{"internal/jmap/core", []string{"."},
		"the core of JMAP calls methods without knowing their data types, HTTP or the store"},
	{"internal/ctxlock", nil,
		"a lock needs nothing"},
	{"internal/cache", nil,
		"a cache needs nothing"},
	{"internal/datadir/serverkeys", []string{".", "internal/datadir", "internal/mail/signedlink"},
		"the keys are files of the data directory; links say how long a key must be"},
	{"internal/datadir", []string{".", "internal/config"},
		"the names and the lock of a data directory do not depend on what is stored in it"},
	{"internal/mail/feedback", []string{".", "internal/datadir", "internal/mail/bounce", "internal/mail/signedlink", "internal/store/control", "internal/store/deliveries", "internal/store/retry", "internal/catalog", "internal/catalog/audit", "internal/people", "internal/people/registry", "internal/people/suppression"},
		"a report changes deliveries, bounces and suppressions, and is found by the signatures of render"},
	{"internal/store/database", []string{".", "internal/config", "internal/datadir", "internal/httpapi/wire", "internal/store", "internal/store/move", "internal/store/postgres", "internal/store/retry", "internal/store/sqlite"},
		"it opens one of the two databases, and pairs it with a data directory"},
	{"internal/admin/migrate", []string{".", "internal/config", "internal/datadir", "internal/httpapi/wire", "internal/store/database", "internal/store/move", "internal/store/postgres"},
		"a migration opens two databases and has package move copy between them"},
	{"internal/admin/recovery", []string{".", "internal/admin/backup", "internal/bus", "internal/datadir", "internal/pipeline/eventgroup", "internal/pipeline/plan", "internal/store/deliveries", "internal/people/registry"},
		"the first start after a restore makes new batches of what is open"},
	{"internal/admin/doctor/deep", []string{".", "internal/admin/backup", "internal/admin/doctor", "internal/bus", "internal/config", "internal/datadir", "internal/mailbox", "internal/store", "internal/store/control", "internal/store/deliveries", "internal/store/postgres", "internal/store/sqlite"},
		"it reads all stored data, in each place where data are stored"},
	{"internal/admin/doctor/probe", []string{".", "internal/admin/doctor", "internal/config", "internal/pipeline/deliver/smtp", "internal/store", "internal/store/control", "internal/store/database", "internal/store/move", "internal/store/postgres", "internal/store/sqlite", "internal/catalog"},
		"it looks at databases and relays for the doctor"},
	{"internal/admin/control", []string{".", "internal/bus", "internal/pipeline/deliver", "internal/pipeline/deliver/channels", "internal/pipeline/deliver/limit", "internal/pipeline/eventgroup", "internal/pipeline/ingest", "internal/store/deliveries", "internal/store/retry", "internal/catalog", "internal/people/registry"},
		"switches answer in the terms of deliver, and parked work goes back to the bus"},
	{"internal/admin/privacy", []string{".", "internal/admin/report", "internal/bus", "internal/mail/submission", "internal/httpapi", "internal/httpapi/wire", "internal/admin/mailboxes", "internal/mailbox", "internal/pipeline/eventgroup", "internal/pipeline/ingest", "internal/store/deliveries", "internal/store/retry", "internal/catalog/audit", "internal/people", "internal/people/registry", "internal/people/suppression"},
		"an erasure reaches the registry, the record and the events on the bus"},
	{"internal/admin/preview", []string{".", "internal/admin/report", "internal/httpapi/wire", "internal/mail/address", "internal/pipeline/compose", "internal/pipeline/eventgroup", "internal/pipeline/ingest", "internal/render", "internal/render/lint", "internal/render/mime", "internal/store/control", "internal/store/deliveries", "internal/catalog", "internal/catalog/document", "internal/people", "internal/people/registry"},
		"a preview composes and renders a message as dispatch does"},
	{"internal/pipeline/ingest/messages", []string{".", "internal/datadir", "internal/filetype", "internal/httpapi", "internal/httpapi/wire", "internal/mail/submission", "internal/pipeline/compose", "internal/pipeline/eventgroup", "internal/pipeline/ingest", "internal/render", "internal/render/liquid", "internal/render/mime", "internal/store/deliveries", "internal/catalog", "internal/catalog/state", "internal/people", "internal/people/registry"},
		"a direct message is composed as dispatch does, answered in the types of the API, and appended by ingest"},
	{"internal/admin/status", []string{".", "internal/admin/backup", "internal/admin/control", "internal/admin/report", "internal/bus", "internal/datadir", "internal/httpapi/wire", "internal/mail/inbound", "internal/pipeline/deliver/channels", "internal/pipeline/match/topicstate", "internal/store/database", "internal/store/retry", "internal/catalog", "internal/people/registry", "internal/people/suppression"},
		"a status shows the state of every part of the server"},
	{"internal/admin/captured", []string{".", "internal/catalog", "internal/catalog/document", "internal/httpapi", "internal/httpapi/wire", "internal/mail/mimetree", "internal/pipeline/deliver/capture"},
		"files of messages are read as the capture driver writes them, and shown in the types of the API"},
	{"internal/httpapi/csvrows", nil,
		"the columns of a list follow from its type"},
	{"internal/admin/tasks", []string{".", "internal/catalog", "internal/catalog/audit", "internal/httpapi/wire", "internal/people", "internal/people/suppression", "internal/store/control", "internal/store/retry"},
		"a task calls what the request for one object calls, is shown in the types of the API, and is stored"},
	{"internal/sends", []string{".", "internal/httpapi/wire", "internal/inputerror", "internal/pipeline/ingest/messages", "internal/render/liquid", "internal/catalog", "internal/store/control", "internal/store/retry"},
		"a send is a list that becomes messages; who accepts messages, who pauses broadcasts and where rows are stored is passed in"},
	{"internal/admin/rates", []string{".", "internal/httpapi/wire", "internal/store/control", "internal/store/retry"},
		"the values of minutes are read from counters, stored, and shown in the types of the API"},
	{"internal/admin/nodes", []string{".", "internal/bus", "internal/cluster", "internal/httpapi/httpio", "internal/httpapi/problem", "internal/httpapi/wire", "internal/pipeline/deliver/remote", "internal/pipeline/match/replica"},
		"a list of the nodes says which of them deliver and match"},
	{"internal/admin/workers", []string{"internal/catalog", "internal/httpapi/wire", "internal/session", "internal/session/fleet"},
		"it shows sessions and agents in the types of the API"},
	{"internal/admin/adminkey", []string{"internal/catalog/state", "internal/datadir", "internal/people/registry"},
		"the key is created in the registry, and its file is in the data directory"},
	{"internal/people/diskfloor", []string{"internal/datadir", "internal/httpapi", "internal/people", "internal/people/registry"},
		"it stands between the API and the registry"},
	{"internal/pipeline/workercall", []string{".", "internal/pipeline/deliver/worker", "internal/session", "internal/session/broker", "internal/session/call"},
		"the pipeline calls workers, and the broker does not know the pipeline"},
	{"internal/server", []string{".", "client", "internal/..."},
		"server is the only package that names the concrete types"},
	{"internal/test/arch", nil,
		"the rules read sources; they need none of them"},
}

const (
	whyBasic    = "every package may use it, and it knows nothing of the domain"
	whyStage    = "stages do not import each other: a stage declares the small interface that it needs, and server composes them"
	whyKept     = "what is kept is written once, against the contract of a database, and satisfies the small interfaces that its consumers declare"
	whyDatabase = "a driver of a database runs statements and knows nothing of what they mean"
	whyDriver   = "a driver knows the contract in driver; package deliver decides what follows from an outcome"
)

const whyExperiment = "an experiment runs against a real server through its API, and knows no other experiment; only what is measured by itself (conditions, formatting, the queue of a channel) is imported from the product"

// testGrants is what tests may import beside that: the embedded real things
// rather than imitations of them.
var testGrants = []string{".", "client", "client/session", "client/worker", "internal/bus", "internal/mail/linktoken", "internal/mailbox/apppassword", "internal/session/sessionlog", "internal/store", "internal/store/...", "internal/test/pgtest", "internal/sink", "internal/pipeline/deliver/delivertest", "internal/bench/benchtest", "internal/mail/dkim", "internal/test/dnstest", "internal/test/issuer", "internal/test/powerloss/mount", "internal/condition", "internal/mail/address", "internal/pipeline/due", "internal/pipeline/record", "internal/admin/report", "internal/pipeline/plan", "internal/catalog/...", "internal/people", "internal/people/registry", "internal/people/suppression"}

// basics are packages that every other package may import.
var basics = []string{"internal/checksum", "internal/clock", "internal/durablefile", "internal/failpoint", "internal/background", "internal/ctxlock", "internal/cache"}

func grantOf(dir string) (grant, bool) {
	for {
		if i := slices.IndexFunc(grants, func(g grant) bool { return g.dir == dir }); i >= 0 {
			return grants[i], true
		}
		i := strings.LastIndexByte(dir, '/')
		if i < 0 {
			return grant{}, false
		}
		dir = dir[:i]
	}
}

func granted(list []string, target string) bool {
	return slices.ContainsFunc(list, func(may string) bool {
		base, below := strings.CutSuffix(may, "/...")
		return target == base || below && strings.HasPrefix(target, base+"/")
	})
}

// imports calls visit for each import of a Go file.
func imports(f *file, visit func(target string, line int)) {
	for _, spec := range f.ast.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			panic(err) // the parser took it
		}
		visit(target, f.line(spec.Pos()))
	}
}

// inModule returns the path of target from the root of the module.
func inModule(target string) (string, bool) {
	if target == module {
		return ".", true
	}
	return strings.CutPrefix(target, module+"/")
}

func direction(f *file) []finding {
	if !f.isGo() {
		return nil
	}
	g, known := grantOf(f.dir())
	if !known {
		return []finding{{f.path, 1, "package " + f.dir() + " has no place in the tree",
			"who may import whom is decided once, in one table",
			"add a row to grants in internal/test/arch/imports_test.go that says what it may import and why"}}
	}
	var found []finding
	imports(f, func(target string, line int) {
		to, ours := inModule(target)
		if !ours || to == f.dir() || f.dir() != "." && strings.HasPrefix(to, f.dir()+"/") {
			return
		}
		if granted(g.may, to) || f.dir() != "." && granted(basics, to) || f.isTest() && granted(testGrants, to) {
			return
		}
		found = append(found, finding{f.path, line, g.dir + " imports " + to, g.why,
			"declare the interface that you need here and let server pass the concrete in, or move the shared word to the root package"})
	})
	return found
}

func TestImportsFollowTheDirection(t *testing.T) { check(t, direction) }

// onlyStandard makes the rule that a package imports no library at all.
func onlyStandard(dir, name, why, do string) func(*file) []finding {
	return func(f *file) []finding {
		if !f.isGo() || f.dir() != dir || f.isTest() {
			return nil
		}
		var found []finding
		imports(f, func(target string, line int) {
			if first, _, _ := strings.Cut(target, "/"); strings.Contains(first, ".") {
				found = append(found, finding{f.path, line, name + " imports " + target, why, do})
			}
		})
		return found
	}
}

var (
	rootIsPure = onlyStandard(".", "the root package",
		"its words outlive every library", "keep the library behind a stage or a driver")
	evaluatorIsPure = onlyStandard("internal/condition/evaluator", "the evaluator",
		"the index is built on a library for CEL, and what checks the index may not have the mistakes of that library",
		"write what is needed with the standard library; a test may compare it with the library")
)

func TestRootImportsOnlyTheStandardLibrary(t *testing.T) { check(t, rootIsPure) }

func TestEvaluatorImportsOnlyTheStandardLibrary(t *testing.T) { check(t, evaluatorIsPure) }

func TestEveryGrantNamesAPackageThatMayExist(t *testing.T) {
	for i, g := range grants {
		if g.why == "" {
			t.Errorf("%s: no reason given", g.dir)
		}
		if slices.ContainsFunc(grants[:i], func(other grant) bool { return other.dir == g.dir }) {
			t.Errorf("%s: two rows", g.dir)
		}
		for _, may := range g.may {
			if base, _ := strings.CutSuffix(may, "/..."); base != "internal" {
				if _, known := grantOf(base); !known {
					t.Errorf("%s may import %s, which has no row", g.dir, may)
				}
			}
		}
	}
}
