package pgtest

import "os"

// TemplateVariable names the environment variable with the name of the template on
// the server of Variable, where it has one.
const TemplateVariable = "FANFARE_TEST_POSTGRES_TEMPLATE"

// template is a name that nothing else has on a server that was launched.
const template = "template_fanfare"

// renew gives a copy its own identity, generated as in the first migration. A server uses it to recognize its database.
const renew = "UPDATE fanfare.meta SET value = ('x' || left(md5(gen_random_uuid()::text), 16))::bit(64)::bigint WHERE name = 'identity'"

// Template creates the template database for tests and returns its name. fill creates the schema at a URL.
func (c *Cluster) Template(fill func(at string) error) (name string, err error) {
	at, err := inDatabase(c.URL, template)
	if err != nil {
		return "", err
	}
	if err := execute(c.URL, "CREATE DATABASE "+template); err != nil {
		return "", err
	}
	if err := fill(at); err != nil {
		return "", err
	}
	return template, execute(c.URL, "ALTER DATABASE "+template+" IS_TEMPLATE true ALLOW_CONNECTIONS false")
}

// Prepared is Database for tests that are not about a first start: if there is a template, the database already has the
// schema, as after an earlier start.
func Prepared(t TB) string {
	t.Helper()
	server, name := os.Getenv(Variable), os.Getenv(TemplateVariable)
	if server == "" || name == "" {
		return Database(t)
	}
	at := newDatabase(t, server, "CREATE DATABASE %s TEMPLATE "+name)
	Execute(t, at, renew)
	return at
}
