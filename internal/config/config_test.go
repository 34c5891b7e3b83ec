package config

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"fanfare.dev/fanfare"
)

// from loads a configuration from the given file, variables and arguments.
func from(t *testing.T, file string, env map[string]string, args ...string) (Config, error) {
	t.Helper()
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	Flags(flags)
	if file != "" {
		args = append(args, "--config", "fanfare.yaml")
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return load(flags,
		func(k string) (string, bool) { v, ok := env[k]; return v, ok },
		func(name string) ([]byte, error) {
			switch name {
			case "fanfare.yaml":
				return []byte(file), nil
			case "cluster.key":
				return []byte(strings.Repeat("key ", 10) + "\n"), nil
			case "nats.url":
				return []byte("nats://user:secret@nats.example.org:4222\n"), nil
			case "db.password":
				return []byte("p@ss:w/ord#\r\n"), nil
			case "empty":
				return []byte("\n"), nil
			}
			return nil, fs.ErrNotExist
		})
}

func TestDefaultsAreValid(t *testing.T) {
	c, err := from(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.DataDir != "./fanfare-data" || c.Listen != "127.0.0.1:8085" || !c.Fsync() || c.Lease != 90*time.Second ||
		c.Retention != 30 || c.DrainTimeout != 30*time.Second || len(c.Roles) != 1 || c.Roles[0] != "all" || c.MetricsOpen {
		t.Errorf("defaults are %+v", c)
	}
	if got := c.DiskFloor.Bytes(100e9); got != 1e9 {
		t.Errorf("floor of a 100 GB disk is %d", got)
	}
	if got := c.DiskFloor.Bytes(10e9); got != 500e6 {
		t.Errorf("floor of a 10 GB disk is %d", got)
	}
}

func TestFlagBeatsEnvironmentBeatsFile(t *testing.T) {
	file := "listen: 127.0.0.1:1\nlease: 20s\nretention_days: 7\nroles: [all]\nmetrics_open: true\n"
	env := map[string]string{"FANFARE_LISTEN": "127.0.0.1:2", "FANFARE_LEASE": "30s"}
	c, err := from(t, file, env, "--listen", "127.0.0.1:3", "--durability=relaxed")
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:3" || c.Lease != 30*time.Second || c.Retention != 7 || c.Fsync() || !c.MetricsOpen || strings.Join(c.Roles, "+") != "all" {
		t.Errorf("got %+v", c)
	}
	if c, err := from(t, "", map[string]string{"FANFARE_ROLES": " all"}); err != nil || strings.Join(c.Roles, "+") != "all" {
		t.Errorf("roles from the environment: %v, %v", c.Roles, err)
	}
}

func TestWrongConfigurationNamesFieldPlaceAndMend(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		env  map[string]string
		args []string
		want []string
	}{
		"unknown key":                 {file: "data_dir: x\nlisen: 1.2.3.4:5\n", want: []string{"line 2, column 1", `unknown key "lisen"`, "did you mean listen?"}},
		"two unknown keys":            {file: "foo: 1\nbarbarbar: 2\n", want: []string{"line 1", "line 2", "/foo", "/barbarbar"}},
		"key twice":                   {file: "listen: 127.0.0.1:1\nlisten: 127.0.0.1:2\n", want: []string{"line 2", "listen"}},
		"syntax":                      {file: "listen: [\n", want: []string{"line", "fanfare.yaml"}},
		"not a mapping":               {file: "- a\n- b\n", want: []string{"line 1", "mapping"}},
		"bad duration in file":        {file: "\nlease: soon\n", want: []string{"/lease", "line 2", "duration", "90s"}},
		"bad duration in env":         {env: map[string]string{"FANFARE_LEASE": "x"}, want: []string{"/lease", "FANFARE_LEASE"}},
		"resolver without a port":     {args: []string{"--resolver", "127.0.0.1"}, want: []string{"/resolver", "--resolver", "host:port"}},
		"bad number by flag":          {args: []string{"--retention-days", "many"}, want: []string{"/retention_days", "--retention-days", "must be a whole number, set by"}},
		"indentation":                 {file: "listen: \":80\"\n  data_dir: x\n", want: []string{"line 2, column 3", "in the first column"}},
		"retention of no day":         {args: []string{"--retention-days", "0"}, want: []string{"/retention_days", "1 or more"}},
		"short lease":                 {args: []string{"--lease", "1s"}, want: []string{"/lease", "10s to 1h"}},
		"durability":                  {file: "durability: maybe\n", want: []string{"/durability", "line 1", "fsync, relaxed"}},
		"listen without port":         {args: []string{"--listen", "localhost"}, want: []string{"/listen", "host:port"}},
		"public URL":                  {args: []string{"--public-url", "news.example.org"}, want: []string{"/public_url", "https://"}},
		"certificate alone":           {args: []string{"--tls-cert", "/nonexistent.pem"}, want: []string{"/tls_key", "/tls_cert", "no such file"}},
		"role":                        {args: []string{"--roles", "all,cook"}, want: []string{"/roles", `"cook"`}},
		"role without effect":         {args: []string{"--roles", "match"}, want: []string{"/roles", `"match"`, "use all"}},
		"inbound name alone":          {args: []string{"--inbound-name", "mx.example.org"}, want: []string{"/inbound_name", "without inbound"}},
		"inbound certificate alone":   {args: []string{"--inbound-tls-cert", "mx.pem", "--inbound-tls-key", "mx.key"}, want: []string{"/inbound_tls_cert", "/inbound_tls_key", "without inbound"}},
		"LMTP address":                {args: []string{"--lmtp-listen", "24"}, want: []string{"/lmtp_listen", "127.0.0.1:24"}},
		"LMTP on port 25":             {args: []string{"--lmtp-listen", "127.0.0.1:25"}, want: []string{"/lmtp_listen", "another port"}},
		"submission without TLS":      {args: []string{"--submission-listen", ":587"}, want: []string{"/submission_listen", "submission_tls_cert"}},
		"submissions without TLS":     {args: []string{"--submissions-listen", ":465"}, want: []string{"/submissions_listen", "submission_tls_cert"}},
		"submission certificate":      {args: []string{"--submission-tls-cert", "/nonexistent.pem"}, want: []string{"/submission_tls_key", "/submission_tls_cert", "no effect", "no such file"}},
		"IMAP without a certificate":  {args: []string{"--imap-listen", ":143"}, want: []string{"/imap_listen", "certificate", "imap_tls_cert"}},
		"IMAP address":                {args: []string{"--imap-listen", "143"}, want: []string{"/imap_listen", "host:port"}},
		"IMAPS on this machine":       {args: []string{"--imaps-listen", "127.0.0.1:993"}, want: []string{"/imaps_listen", "certificate"}},
		"IMAP certificate alone":      {args: []string{"--imap-tls-cert", "imap.pem"}, want: []string{"/imap_tls_key", "/imap_tls_cert", "without imap_listen", "no such file"}},
		"floor":                       {args: []string{"--disk-floor", "lots"}, want: []string{"/disk_floor", "size such as"}},
		"password in the file":        {file: "nats: nats://a:b@c:4222\n", want: []string{"/nats", "nats_file", "line 1"}},
		"password by flag":            {args: []string{"--nats", "nats://a:b@c:4222"}, want: []string{"/nats", "FANFARE_NATS"}},
		"nats not a URL":              {args: []string{"--nats", "somewhere"}, want: []string{"/nats", "nats://"}},
		"both nats":                   {args: []string{"--nats", "nats://c", "--nats-file", "nats.url"}, want: []string{"/nats_file", "cannot both"}},
		"missing secret file":         {args: []string{"--nats-file", "nowhere"}, want: []string{"/nats_file"}},
		"database of another make":    {args: []string{"--db", "mysql://db/fanfare"}, want: []string{"/db", "mysql:", "postgres://", "SQLite", "--db"}},
		"database without scheme":     {file: "\ndb: db.example.org\n", want: []string{"/db", "line 2", "not a URL"}},
		"database by keywords":        {args: []string{"--db", "host=db user=fanfare"}, want: []string{"/db", "not a URL"}},
		"database without name":       {args: []string{"--db", "postgres://fanfare@db.example.org"}, want: []string{"/db", "does not contain a database name"}},
		"database without a port":     {env: map[string]string{"FANFARE_DB": "postgres://a:b@c:port/d"}, want: []string{"/db", "FANFARE_DB", "not a URL", "%40"}},
		"database, password escape":   {env: map[string]string{"FANFARE_DB": "postgres://a:b%@c/d"}, want: []string{"/db", "%25"}},
		"database, secret in file":    {file: "db: postgres://a:b@c/d\n", want: []string{"/db", "line 1", "FANFARE_DB", "db_password_file"}},
		"database, secret by flag":    {args: []string{"--db", "postgres://a:b@c/d"}, want: []string{"/db", "FANFARE_DB"}},
		"database, secret in query":   {args: []string{"--db", "postgres://c/d?user=a&password=a:b@"}, want: []string{"/db", "FANFARE_DB"}},
		"database, comma in secret":   {args: []string{"--db", "postgres://a:b,c@d/e"}, want: []string{"/db", "FANFARE_DB", "password"}},
		"another database, no secret": {args: []string{"--db", "mysql://fanfare@host/x"}, want: []string{"/db", "begins with mysql:"}},
		"database, bad and secret":    {args: []string{"--db", "postgres://a:b@c:port/d"}, want: []string{"/db", "FANFARE_DB"}},
		"database, two passwords": {env: map[string]string{"FANFARE_DB": "postgres://a:b@c/d"}, args: []string{"--db-password-file", "db.password"},
			want: []string{"/db_password_file", "also set"}},
		"database, whose password":     {args: []string{"--db", "postgres://c/d", "--db-password-file", "db.password"}, want: []string{"/db", "USER@"}},
		"database, empty password":     {args: []string{"--db", "postgres://a@c/d", "--db-password-file", "empty"}, want: []string{"/db_password_file", "first line"}},
		"database, password nowhere":   {args: []string{"--db", "postgres://a@c/d", "--db-password-file", "nowhere"}, want: []string{"/db_password_file"}},
		"standby without database":     {args: []string{"--db-reads", "postgres://a@c/d"}, want: []string{"/db_reads", "without db"}},
		"standby that is none":         {args: []string{"--db", "postgres://a@c/d", "--db-reads", "nowhere"}, want: []string{"/db_reads", "not a URL"}},
		"routes without node":          {args: []string{"--cluster-routes", "a:1,b:1,c:1", "--cluster-listen", ":1"}, want: []string{"/cluster_routes", "without node"}},
		"routes and nats":              {args: node("--nats", "nats://c", "--cluster-routes", "n1:1,n2:1,n3:1"), want: []string{"/cluster_routes", "together with nats"}},
		"neither routes nor nats":      {args: node(), want: []string{"/nats", "or set cluster_routes"}},
		"two routes":                   {args: node("--cluster-routes", "n1:1,n2:1"), want: []string{"/cluster_routes", "at least 3"}},
		"the same route":               {args: node("--cluster-routes", "n1:1,n2:1,n3:1,n2:1"), want: []string{"/cluster_routes", "listed twice"}},
		"a route without a port":       {args: node("--cluster-routes", "n1:1,n2:1,n3"), want: []string{"/cluster_routes", `"n3"`}},
		"whose route":                  {args: node("--cluster-routes", "a:1,b:1,c:1"), want: []string{"/cluster_listen", "must be set"}},
		"two routes of a node":         {args: node("--cluster-routes", "n1:1,n1:2,c:1"), want: []string{"/cluster_listen", "must be set"}},
		"a bad address for routes":     {args: node("--cluster-routes", "n1:1,n2:1,n3:1", "--cluster-listen", "n1"), want: []string{"/cluster_listen", "host:port"}},
		"cluster_listen alone":         {args: node("--nats", "nats://c", "--cluster-listen", ":1"), want: []string{"/cluster_listen", "without cluster_routes"}},
		"more replicas than servers":   {args: node("--cluster-routes", "n1:1,n2:1,n3:1", "--replicas", "4"), want: []string{"/replicas", "lists only 3"}},
		"connections without database": {args: []string{"--db-connections", "8"}, want: []string{"/db_connections", "without db"}},
		"timeout without database":     {args: []string{"--db-statement-timeout", "1m"}, want: []string{"/db_statement_timeout", "without db"}},
		"password without database":    {args: []string{"--db-password-file", "db.password"}, want: []string{"/db_password_file", "without db"}},
		"too few connections":          {args: []string{"--db", "postgres://a@c/d", "--db-connections", "1"}, want: []string{"/db_connections", "4 to 1000"}},
		"no time for statements":       {args: []string{"--db", "postgres://a@c/d", "--db-statement-timeout", "0s"}, want: []string{"/db_statement_timeout", "1s to 1h"}},

		"several at once":        {args: []string{"--lease", "1s", "--log-level", "loud"}, want: []string{"/lease", "/log_level"}},
		"missing configuration":  {args: []string{"--config", "nowhere.yaml"}, want: []string{"--config"}},
		"list where text stands": {file: "listen: [a, b]\n", want: []string{"/listen", "line 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := from(t, test.file, test.env, test.args...)
			if err == nil {
				t.Fatal("was accepted")
			}
			if fanfare.CodeOf(err) != fanfare.Invalid {
				t.Errorf("code is %s", fanfare.CodeOf(err))
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "a:b@") {
				t.Errorf("%q shows the password", err)
			}
		})
	}
}

func TestSecretsComeByFileOrEnvironment(t *testing.T) {
	c, err := from(t, "", nil, "--nats-file", "nats.url")
	if err != nil || c.NATS != "nats://user:secret@nats.example.org:4222" {
		t.Errorf("from file: %q, %v", c.NATS, err)
	}
	c, err = from(t, "", map[string]string{"FANFARE_NATS": "nats://u:p@h:1,nats://h2:1"})
	if err != nil || c.NATS == "" {
		t.Errorf("from environment: %v", err)
	}
	c, err = from(t, "db: postgres://fanfare@db.example.org/fanfare?sslmode=verify-full\ndb_reads: postgres://fanfare@standby/fanfare\n", nil, "--db-password-file", "db.password")
	const escaped = "p%40ss%3Aw%2Ford%23"
	if err != nil || c.SQLite() || c.DB != "postgres://fanfare:"+escaped+"@db.example.org/fanfare?sslmode=verify-full" || c.DBReads != "postgres://fanfare:"+escaped+"@standby/fanfare" {
		t.Errorf("password of the database from file: %q, %q, %v", c.DB, c.DBReads, err)
	}
	c, err = from(t, "", map[string]string{"FANFARE_DB": "postgresql://a:b@one:5432,two:5432/d", "FANFARE_DB_READS": "postgres://a:b@three/d"})
	if err != nil || c.DB == "" || c.DBReads == "" {
		t.Errorf("database from environment: %v", err)
	}
	if c, err := from(t, "", nil, "--db", "postgres:///fanfare?host=/run/postgresql&user=fanfare"); err != nil || c.SQLite() {
		t.Errorf("database at a socket: %v", err)
	}
}

func TestReferenceIsAValidFileWithEveryKey(t *testing.T) {
	text := Reference()
	origins := map[string]origin{}
	values, err := parseFile("reference.yaml", []byte(text), origins)
	if err != nil {
		t.Fatal(err)
	}
	if len(values) != len(fields()) {
		t.Errorf("reference has %d keys of %d", len(values), len(fields()))
	}
	if c, err := from(t, text, nil); err != nil || c.Lease != 90*time.Second {
		t.Errorf("reference does not load: %+v, %v", c, err)
	}
	for _, f := range fields() {
		if f.doc == "" {
			t.Errorf("%s has no documentation", f.key)
		}
		if !strings.Contains(text, f.env()) || !strings.Contains(text, "--"+f.flag()) {
			t.Errorf("reference does not say how to set %s", f.key)
		}
	}
}

var update = flag.Bool("update", false, "write the generated document anew")

func TestConfigurationReferenceIsFresh(t *testing.T) {
	const path = "../../docs/reference/settings.md"
	text := Markdown()
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != text {
		t.Errorf("%s is stale (%v): write it anew with -update", path, err)
	}
}

func TestDiskFloorRoundTrips(t *testing.T) {
	for _, text := range []string{"5% or 1GB", "5%", "500MB", "1GiB", "0", "0.5% or 123"} {
		var f, again DiskFloor
		if err := f.UnmarshalText([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if err := again.UnmarshalText([]byte(f.String())); err != nil || again != f {
			t.Errorf("%s became %s", text, f)
		}
	}
	for _, text := range []string{"", "%", "-1%", "100%", "NaN%", "-5GB", "5 bananas", "1GB or", "99999999TB"} {
		if err := new(DiskFloor).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func FuzzConfigurationFileNeverPanics(f *testing.F) {
	f.Add([]byte(Reference()))
	f.Add([]byte("a: &x 1\nb: *x\n? {c: d}\n: e\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := parseFile("f", b, map[string]origin{})
		var known *fanfare.Error
		if err != nil && !errors.As(err, &known) {
			t.Errorf("%T is not for users", err)
		}
	})
}

func TestLimitsThatCannotBeMeantAreRefused(t *testing.T) {
	good := func() Config {
		c, err := load(pflag.NewFlagSet("", pflag.ContinueOnError), func(string) (string, bool) { return "", false }, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, test := range map[string]struct {
		change func(*Config)
		field  string // "" if the configuration is valid
	}{
		"negative":                  {func(c *Config) { c.MaxRequests = -1 }, "/max_requests"},
		"more than can be measured": {func(c *Config) { c.RateLimit = maxRate + 1 }, "/rate_limit"},
		"a burst without a rate":    {func(c *Config) { c.RateBurst = 9 }, "/rate_burst"},
		"no submission":             {func(c *Config) { c.SubmissionRate = 0 }, "/submission_rate"},
		"no age of submissions":     {func(c *Config) { c.SubmissionDays = 0 }, "/submission_retention_days"},
		"an origin with a path":     {func(c *Config) { c.CORSOrigins = []string{"https://a.example/"} }, "/cors_origins"},
		"an origin without scheme":  {func(c *Config) { c.CORSOrigins = []string{"a.example"} }, "/cors_origins"},
		"the origin null":           {func(c *Config) { c.CORSOrigins = []string{"null"} }, "/cors_origins"},
		"an origin in capitals":     {func(c *Config) { c.CORSOrigins = []string{"https://A.example"} }, "/cors_origins"},
		"a name as a proxy":         {func(c *Config) { c.TrustedProxies = []string{"proxy.example"} }, "/trusted_proxies"},
		"another word for the log":  {func(c *Config) { c.AccessLog = "some" }, "/access_log"},
		"all of it, right": {func(c *Config) {
			c.RateLimit, c.RateBurst, c.AccessLog = 10, 100, "all"
			c.CORSOrigins, c.TrustedProxies = []string{"https://a.example:8443", "*"}, []string{"10.0.0.0/8", "::1"}
		}, ""},
	} {
		c := good()
		test.change(&c)
		err := c.Validate()
		if test.field == "" && err != nil || test.field != "" && (err == nil || !strings.HasPrefix(err.Error(), test.field+":")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := good()
	c.TrustedProxies = []string{"10.1.2.3/8", "192.0.2.1"}
	if got := fmt.Sprint(c.Proxies()); got != "[10.0.0.0/8 192.0.2.1/32]" {
		t.Errorf("proxies are %s", got)
	}
}

func TestListsMayHaveSpaces(t *testing.T) {
	env := map[string]string{"FANFARE_CORS_ORIGINS": "https://a.example, https://b.example"}
	c, err := load(pflag.NewFlagSet("", pflag.ContinueOnError), func(name string) (string, bool) { v, ok := env[name]; return v, ok }, nil)
	if err != nil || len(c.CORSOrigins) != 2 || c.CORSOrigins[1] != "https://b.example" {
		t.Errorf("%q %v", c.CORSOrigins, err)
	}
}

// node returns the flags of a node of a cluster, and others.
func node(more ...string) []string {
	return append([]string{"--node", "n1", "--node-url", "http://n1:8085", "--db", "postgres://a@c/d", "--cluster-key-file", "cluster.key"}, more...)
}

// A node with routes stores three copies, and listens on the port of its own route. A node that cannot lead needs no bus.
func TestRoutesOfEmbeddedServers(t *testing.T) {
	c, err := from(t, "", nil, node("--cluster-routes", "n0:6222,n1:6223,n2:6222,n3:6222,n4:6222")...)
	if err != nil || !c.EmbeddedCluster() || c.StreamReplicas() != 3 || c.RouteListen() != "0.0.0.0:6223" {
		t.Errorf("replicas %d, listen %q, %v", c.StreamReplicas(), c.RouteListen(), err)
	}
	c, err = from(t, "", nil, node("--cluster-routes", "n1:1,n2:1,n3:1", "--replicas", "1", "--cluster-listen", "10.0.0.1:6222")...)
	if err != nil || c.StreamReplicas() != 1 || c.RouteListen() != "10.0.0.1:6222" {
		t.Errorf("replicas %d, listen %q, %v", c.StreamReplicas(), c.RouteListen(), err)
	}
	c, err = from(t, "", nil, node("--nats", "nats://c")...)
	if err != nil || c.EmbeddedCluster() || c.StreamReplicas() != 0 {
		t.Errorf("replicas %d, %v", c.StreamReplicas(), err)
	}
	if _, err = from(t, "", nil, node("--roles", "deliver")...); err != nil {
		t.Errorf("a node that only delivers: %v", err)
	}
}
