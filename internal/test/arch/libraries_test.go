package arch

import (
	"slices"
	"strings"
	"testing"
)

// A home says which folders may import a library (or a part of the standard
// library). Below lists prefixes of import paths; no folder means nowhere.
type home struct {
	library string
	dirs    []string
	why     string
	do      string
}

var homes = []home{
	{"github.com/nats-io/", []string{"internal/bus", "internal/bench/harness", "internal/bench/sessions"},
		"every durable hop goes through bus, embedded or not, so that its promises are kept in one place; bench runs the NATS server that nodes share, and measures request/reply with nothing around it",
		"take a small interface over what bus offers"},
	{"github.com/rabbitmq/", []string{"internal/bench/sessions"},
		"bench measures RabbitMQ as a peer; nothing else uses it", "use internal/session"},
	{"zombiezen.com/go/sqlite", []string{"internal/store/sqlite", "internal/bench"},
		"SQL stays behind the store, so that another database is another driver; bench measures what the library does with nothing around it",
		"add a method to the store"},
	{"modernc.org/", []string{"internal/store/sqlite"},
		"SQL stays behind the store, so that another database is another driver",
		"add a method to the store"},
	{"github.com/fergusstrange/embedded-postgres", []string{"internal/test/pgtest"},
		"a PostgreSQL for tests is started in one place, which root can use too", "use pgtest.Database or pgtest.Start"},
	{"github.com/hanwen/go-fuse/", []string{"internal/test/powerloss/mount"},
		"a disk that forgets is mounted in one place, for tests alone", "use internal/test/powerloss/mount"},
	{"github.com/pressly/goose/", []string{"internal/store/postgres"},
		"a schema is brought up to date where its database is opened",
		"add a migration to internal/store/postgres/migrations"},
	{"golang.org/x/net/dns/dnsmessage", []string{"internal/test/dnstest"},
		"the DNS is asked through net.Resolver; only its server in tests reads and writes messages", "take a lookup function"},
	{"github.com/jackc/", []string{"internal/store/postgres", "internal/test/pgtest", "internal/bench"},
		"SQL stays behind the store, so that another database is another driver; bench has the database do the work of the index, as a peer",
		"add a method to the store"},
	{"database/sql", []string{"internal/store"},
		"SQL stays behind the store, so that another database is another driver",
		"add a method to the store"},
	{"github.com/coder/websocket", []string{"internal/session/websocket", "internal/jmap"},
		"JMAP has its own subprotocol of text messages; of sessions, the limits, the heartbeat and the codes of connections are set in one place", "use internal/session/websocket"},
	{"github.com/coreos/go-oidc/", []string{"internal/signin/oidc"},
		"people are identified in one place, with the same limits and checks for every issuer", "use signin/oidc"},
	{"github.com/go-jose/", []string{"internal/compat/notify/token"},
		"tokens that clients sign are checked in one place", "use compat/notify/token"},
	{"github.com/google/uuid", []string{"internal/catalog", "internal/compat"},
		"only clients of other systems know objects by UUIDs", "use the ids of the root package"},
	{"golang.org/x/oauth2", []string{"internal/signin/oidc"},
		"tokens of issuers are exchanged in one place", "use signin/oidc"},
	{"github.com/danielgtaylor/huma/", []string{"internal/httpapi"},
		"the shape of HTTP is api's business", "take and return plain values"},
	{"github.com/aymanbagabas/go-udiff", []string{"internal/httpapi"},
		"what differs between two texts is shown by api, so that all clients show the same", "ask the API"},
	{"github.com/swaggest/swgui/", []string{"internal/httpapi"},
		"the viewer of the document is served by api", "link to /docs"},
	{"github.com/prometheus/", []string{"internal/admin", "internal/mail/feedback", "internal/pipeline/deliver/channels", "internal/mail/inbound", "internal/imap", "internal/jmap", "internal/store", "internal/server"},
		"stages count with plain atomics; the package that sets a stage up gives them names", "expose a counter and let report read it"},
	{"github.com/spf13/cobra", []string{"cmd/fanfare"},
		"commands are turned into calls before anything else sees them", "take a value"},
	{"github.com/spf13/pflag", []string{"cmd/fanfare", "internal/config"},
		"flags are turned into values before anything else sees them", "take a value"},
	{"github.com/vbauerster/mpb/", []string{"internal/cli/terminal", "internal/bench", "internal/demo"},
		"progress is shown by what talks to a person", "report progress through a callback"},
	{"github.com/knadh/koanf/", []string{"internal/config"},
		"configuration is read once, strictly, in one place", "take a value"},
	{"github.com/goccy/go-yaml", []string{"internal/config", "internal/catalog/document", "internal/mail/reply", "internal/session/agent", "internal/signin/oidc", "internal/compat/notifybc/settings", "cmd/fanfare"},
		"YAML is a format of files that people write: settings, the apply document, rules, issuers, the file of an agent", "use JSON"},
	{"github.com/osteele/liquid", []string{"internal/render/liquid", "internal/render/bodies", "internal/bench"},
		"templates are compiled and escaped in one place; bench measures what the library does with nothing around it", "take a function"},
	{"github.com/andybalholm/cascadia", []string{"internal/render/bodies"},
		"selectors of style sheets are read when a template is compiled, and nowhere else", "write the styles in the template"},
	{"github.com/tdewolff/parse/", []string{"internal/render/bodies"},
		"style sheets are read when a template is compiled, and nowhere else", "write the styles in the template"},
	{"github.com/yuin/goldmark", []string{"internal/render/bodies", "internal/render/notifytext"},
		"Markdown becomes HTML when a template is compiled; only the dialect of GOV.UK Notify, where Markdown in values takes effect, is read for each message", "write the template in Markdown"},
	{"cel.dev/", []string{"internal/condition", "internal/bench"},
		"conditions have one language and one meaning; bench measures what the library does with nothing around it", "take a function"},
	{"golang.org/x/net/publicsuffix", []string{"internal/mail/mx", "internal/admin/doctor", "internal/render/lint"},
		"which part of a name an organisation registered is asked of hosts: of mail exchangers, of links, of senders", "take the host as it is"},
	{"github.com/emersion/go-smtp", []string{"internal/sink", "internal/bench"},
		"the SMTP client is ours; the library is the server of the sink", "use internal/pipeline/deliver/smtp"},
	{"github.com/emersion/go-msgauth/dkim", nil,
		"our own signer works on parts that are at hand, without reading the message anew; the library verifies in tests what it signs", "use internal/mail/dkim"},
	{"github.com/emersion/go-msgauth/dmarc", []string{"internal/admin/doctor"},
		"what a domain says of its mail matters to who looks whether ours goes with it", "ask the doctor"},
	{"github.com/santhosh-tekuri/jsonschema/", []string{"internal/catalog/schema"},
		"a topic's schema is compiled once, with the topic", "use Topic.ValidateData"},
	{"golang.org/x/text/language/display", []string{"internal/people/pages"},
		"names of languages are shown to recipients, on pages", "show the tag"},
	{"github.com/xdg-go/scram", nil, "its client checks our server in tests", "use internal/mailbox/apppassword"},
	{"pgregory.net/rapid", nil, "it is for tests", "import it in a _test.go file"},

	{"C", nil, "no cgo: `go build` gives one static binary", "use a Go library"},
	{"plugin", nil, "one static binary", "add a driver"},
	{"encoding/gob", nil, "what is stored or sent must be readable by the next version and by other languages", "write the bytes by hand or use JSON"},
	{"io/ioutil", nil, "its functions have better homes", "use io and os"},
	{"log", nil, "logs are structured", "use log/slog"},
	{"math/rand", nil, "one generator, seeded where tests need it", "use math/rand/v2, or crypto/rand for secrets"},
	{"net/http/pprof", []string{"internal/server"}, "importing it changes the default mux for the whole process", "ask server for profiles"},
	{"net/http", []string{"internal/compat", "internal/httpapi", "internal/server", "internal/cluster", "internal/bench", "internal/admin", "internal/mail/feedback", "internal/sink", "internal/pipeline/deliver/webhook", "internal/session/websocket", "internal/jmap", "internal/signin/oidc", "internal/test/issuer", "client", "cmd/fanfare"},
		"HTTP comes in at api and at the compatible APIs, asks issuers at signin/oidc, JMAP and its sub-protocols are defined on HTTP, is forwarded by nodes, and goes out at client and webhook; a WebSocket begins as a request", "take and return plain values"},
	{"net/http", []string{"internal/httpapi", "internal/compat", "internal/server", "internal/cluster", "internal/bench", "internal/admin", "internal/mail/feedback", "internal/sink", "internal/pipeline/deliver/webhook", "internal/session/websocket", "internal/jmap", "internal/signin/oidc", "internal/test/issuer", "client", "cmd/fanfare"},
		"HTTP comes in at api and compat, asks issuers at signin/oidc, JMAP and its sub-protocols are defined on HTTP, is forwarded by nodes, and goes out at client and webhook; a WebSocket begins as a request", "take and return plain values"},
}

func covers(library, target string) bool {
	return target == library || strings.HasPrefix(target, strings.TrimSuffix(library, "/")+"/")
}

// exact are parts of the standard library whose children are other matters.
var exact = []string{"log", "math/rand", "C", "plugin"}

func librariesAtHome(f *file) []finding {
	if !f.isGo() {
		return nil
	}
	var found []finding
	imports(f, func(target string, line int) {
		i := slices.IndexFunc(homes, func(h home) bool {
			if slices.Contains(exact, h.library) {
				return target == h.library
			}
			return covers(h.library, target)
		})
		if i < 0 {
			return
		}
		h := homes[i]
		if slices.ContainsFunc(h.dirs, func(dir string) bool { return covers(dir, f.dir()) }) {
			return
		}
		if f.isTest() && !slices.Contains([]string{"C", "plugin", "encoding/gob", "io/ioutil"}, h.library) {
			return // tests may hold a real peer against ours
		}
		found = append(found, finding{f.path, line, f.dir() + " imports " + target, h.why, h.do})
	})
	return found
}

func TestLibrariesAreImportedOnlyAtHome(t *testing.T) { check(t, librariesAtHome) }
