package oidc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
)

// Limits of the file with the issuers.
const (
	maxFileBytes   = 1 << 20
	maxIssuers     = 20
	maxNameBytes   = 100
	maxClientBytes = 500
	maxSecretBytes = 4 << 10
	maxScopes      = 50
)

// Settings are the issuers with which people can sign in, and the roles of these people in all services.
type Settings struct {
	Issuers []Issuer
	Roles   []catalog.RoleGrant
}

// URLs lists the URLs of the issuers.
func (s *Settings) URLs() []string {
	var all []string
	for i := range s.Issuers {
		all = append(all, s.Issuers[i].URL)
	}
	return all
}

// An Issuer is an OpenID provider with which people can sign in.
type Issuer struct {
	ID       string // in the address of the sign-in
	Name     string // on the button
	URL      string // identifies it in tokens
	ClientID string
	Scopes   []string // besides openid
	Claims   ClaimNames
	secret   string // "" for a public client
}

// ClaimNames are the names of the claims with the facts about a person.
type ClaimNames struct {
	Name         string // display name
	Mail         string
	MailVerified string // must be true; otherwise, the mail address is ignored
}

// written is the file as people write it.
type written struct {
	Issuers []ast.Node `yaml:"issuers"`
	Roles   []ast.Node `yaml:"roles"`
}

// writtenIssuer is an issuer in the file.
type writtenIssuer struct {
	ID               string   `yaml:"id"`
	Name             string   `yaml:"name"`
	Issuer           string   `yaml:"issuer"`
	ClientID         string   `yaml:"client_id"`
	ClientSecretFile string   `yaml:"client_secret_file"`
	ClientSecretEnv  string   `yaml:"client_secret_env"`
	Scopes           []string `yaml:"scopes"`
	Claims           struct {
		Name          string `yaml:"name"`
		Email         string `yaml:"email"`
		EmailVerified string `yaml:"email_verified"`
	} `yaml:"claims"`
}

// writtenGrant is a role in the file.
type writtenGrant struct {
	Issuer string `yaml:"issuer"`
	Claim  string `yaml:"claim"`
	Value  string `yaml:"value"`
	Role   string `yaml:"role"`
}

// Sources read the secrets of clients.
type Sources struct {
	ReadFile  func(path string) ([]byte, error)
	LookupEnv func(name string) (string, bool)
}

// ReadFile reads the settings in a file. Its error names everything that is wrong, with pointers and lines.
func ReadFile(path string, from Sources) (*Settings, error) {
	b, err := readLimited(path)
	if err == nil {
		var s *Settings
		if s, err = Parse(b, from); err == nil {
			return s, nil
		}
	}
	wrong, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/oidc", Message: err.Error(), Hint: "set oidc to a file that the user that runs the server can read"}
	}
	for _, e := range append([]*fanfare.Error{wrong}, wrong.Details...) {
		e.File = path
	}
	return nil, wrong
}

func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(f, maxFileBytes+1))
}

// Parse reads settings. Unknown fields are errors.
func Parse(b []byte, from Sources) (*Settings, error) {
	switch {
	case len(b) > maxFileBytes:
		return nil, &fanfare.Error{Code: fanfare.TooLarge, Message: fmt.Sprintf("the file is larger than %d bytes", maxFileBytes)}
	case !utf8.Valid(b):
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "the file is not valid UTF-8"}
	}
	file, err := parser.ParseBytes(b, 0)
	if err != nil {
		return nil, syntaxFault(err)
	}
	var w written
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "the file must be one YAML document", Hint: "write a list under issuers:"}
	}
	if err := yaml.NodeToValue(file.Docs[0].Body, &w, yaml.Strict()); err != nil {
		return nil, syntaxFault(err)
	}
	p := &settingsReader{from: from, settings: &Settings{}}
	if len(w.Issuers) == 0 || len(w.Issuers) > maxIssuers {
		p.refuse(file.Docs[0].Body, "/issuers", "list the issuers with which people can sign in", "the file has %d issuers; it must have 1 to %d", len(w.Issuers), maxIssuers)
	}
	if len(w.Roles) > catalog.MaxRoleGrants {
		p.refuse(file.Docs[0].Body, "/roles", "", "the file has %d roles; at most %d are allowed", len(w.Roles), catalog.MaxRoleGrants)
	}
	if len(p.wrong) == 0 {
		for i, node := range w.Issuers {
			p.issuer(node, fmt.Sprintf("/issuers/%d", i))
		}
		for i, node := range w.Roles {
			p.role(node, fmt.Sprintf("/roles/%d", i))
		}
	}
	switch len(p.wrong) {
	case 0:
		return p.settings, nil
	case 1:
		return nil, p.wrong[0]
	}
	return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "the file with the issuers is invalid", Details: p.wrong}
}

func syntaxFault(err error) *fanfare.Error {
	e := &fanfare.Error{Code: fanfare.Invalid, Message: strings.TrimSpace(err.Error()), Hint: "write a list under issuers:; for an example, see the guide to signing in with OpenID Connect"}
	if syntax, ok := errors.AsType[yaml.Error](err); ok {
		e.Message = strings.TrimSpace(syntax.GetMessage())
		if token := syntax.GetToken(); token != nil {
			e.Line, e.Column = token.Position.Line, token.Position.Column
		}
	}
	return e
}

// A settingsReader collects the errors of a file.
type settingsReader struct {
	from     Sources
	settings *Settings
	wrong    []*fanfare.Error
}

func (p *settingsReader) refuse(at ast.Node, pointer, hint, format string, args ...any) {
	e := &fanfare.Error{Code: fanfare.Invalid, Pointer: pointer, Message: fmt.Sprintf(format, args...), Hint: hint}
	if at != nil {
		e.Line = at.GetToken().Position.Line
	}
	p.wrong = append(p.wrong, e)
}

// decode reads a node into to, and reports whether it could.
func (p *settingsReader) decode(node ast.Node, at string, to any) bool {
	if node == nil { // null
		p.refuse(nil, at, "", "the entry is empty")
		return false
	}
	err := yaml.NodeToValue(node, to, yaml.Strict())
	if err != nil {
		e := syntaxFault(err)
		e.Pointer = at
		p.wrong = append(p.wrong, e)
	}
	return err == nil
}

var (
	idPattern    = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)
	scopePattern = regexp.MustCompile(`^[\x21\x23-\x5b\x5d-\x7e]{1,200}$`) // RFC 6749, section 3.3
)

// callbackID is the last part of the address to which issuers return people, so no issuer may have this id.
const callbackID = "callback"

func (p *settingsReader) issuer(node ast.Node, at string) {
	var w writtenIssuer
	if !p.decode(node, at, &w) {
		return
	}
	refuse := func(field, hint, format string, args ...any) { p.refuse(node, at+"/"+field, hint, format, args...) }
	if !idPattern.MatchString(w.ID) || w.ID == callbackID {
		refuse("id", "use up to 40 of a to z, 0 to 9 and hyphens, but not "+callbackID, "%q is not a valid id", w.ID)
	}
	if w.Name == "" || len(w.Name) > maxNameBytes || catalog.PersonName(w.Name) != w.Name {
		refuse("name", fmt.Sprintf("set the name on the button: one line of up to %d bytes, without brackets", maxNameBytes), "%q is not a valid name", w.Name)
	}
	if problem, hint := catalog.CheckIssuerURL(w.Issuer); problem != "" {
		refuse("issuer", hint, "%q: %s", w.Issuer, problem)
	}
	for _, other := range p.settings.Issuers {
		if other.ID == w.ID {
			refuse("id", "give each issuer its own id", "two issuers have the id %q", w.ID)
		}
		if other.URL == w.Issuer {
			refuse("issuer", "list each issuer once", "two entries are for the issuer %s", w.Issuer)
		}
	}
	if w.ClientID == "" || len(w.ClientID) > maxClientBytes || strings.ContainsFunc(w.ClientID, func(r rune) bool { return r < ' ' || r > '~' }) {
		refuse("client_id", "set it to the id that the issuer has given to this server", "%q is not a client id", w.ClientID)
	}
	if w.Scopes == nil {
		w.Scopes = []string{"profile", "email"}
	}
	if len(w.Scopes) > maxScopes || slices.ContainsFunc(w.Scopes, func(s string) bool { return !scopePattern.MatchString(s) }) {
		refuse("scopes", "write a list such as [profile, email, groups]", "the list is not valid")
	}
	w.Scopes = slices.DeleteFunc(w.Scopes, func(s string) bool { return s == "openid" })
	i := Issuer{ID: w.ID, Name: w.Name, URL: w.Issuer, ClientID: w.ClientID, Scopes: w.Scopes, Claims: ClaimNames{or(w.Claims.Name, "name"), or(w.Claims.Email, "email"), or(w.Claims.EmailVerified, "email_verified")}}
	secret, field, err := p.secret(&w)
	if err != nil {
		refuse(field, "set it to a file or a variable that the user that runs the server can read", "%v", err)
	}
	i.secret = secret
	p.settings.Issuers = append(p.settings.Issuers, i)
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// secret reads the secret of a client: the first line of a file, or the value of a variable.
func (p *settingsReader) secret(w *writtenIssuer) (secret, field string, err error) {
	switch {
	case w.ClientSecretFile != "" && w.ClientSecretEnv != "":
		return "", "client_secret_env", errors.New("client_secret_file and client_secret_env cannot both be set")
	case w.ClientSecretFile != "":
		field = "client_secret_file"
		b, err := p.from.ReadFile(w.ClientSecretFile)
		if err != nil {
			return "", field, err
		}
		secret, _, _ = strings.Cut(string(b), "\n")
		secret = strings.TrimRight(secret, "\r")
	case w.ClientSecretEnv != "":
		field = "client_secret_env"
		var ok bool
		if secret, ok = p.from.LookupEnv(w.ClientSecretEnv); !ok {
			return "", field, fmt.Errorf("the variable %s is not set", w.ClientSecretEnv)
		}
	default:
		return "", "", nil
	}
	if secret == "" || len(secret) > maxSecretBytes {
		return "", field, errors.New("the secret is empty or too long")
	}
	return secret, field, nil
}

func (p *settingsReader) role(node ast.Node, at string) {
	var w writtenGrant
	if !p.decode(node, at, &w) {
		return
	}
	g := catalog.RoleGrant(w)
	if field, problem, hint := g.Check(); problem != "" {
		if field != "" {
			at += "/" + field
		}
		p.refuse(node, at, hint, "%s", problem)
		return
	}
	if !slices.ContainsFunc(p.settings.Issuers, func(i Issuer) bool { return i.URL == g.Issuer }) && len(p.wrong) == 0 {
		p.refuse(node, at+"/issuer", "use the URL of one of the issuers in this file", "%q is not an issuer in this file", g.Issuer)
		return
	}
	p.settings.Roles = append(p.settings.Roles, g)
}
