package registry

// Receipts say how the provider behind a channel tells over HTTP what became of
// messages, and with what it signs that.
type Receipts struct {
	Form       string `json:"form"` // standard or mailgun
	SecretEnv  string `json:"secret_env,omitempty"`
	SecretFile string `json:"secret_file,omitempty"`
}

// ReceiptForms are the names of those of package returns.
var ReceiptForms = []string{"standard", "mailgun"}

// ReceiptSecrets reads what receipts are signed with from where the settings say. It
// is never stored and never shown.
func (c *Channel) ReceiptSecrets() (string, error) {
	return c.secret("secret", c.Receipts.SecretEnv, c.Receipts.SecretFile)
}

// receipts reads how a provider tells what became of messages.
func (n node) receipts() (r Receipts) {
	n.fields(fields{
		"form":        func(v node) { r.Form = v.choice(ReceiptForms...) },
		"secret_env":  func(v node) { r.SecretEnv = v.line() },
		"secret_file": func(v node) { r.SecretFile = v.path() },
	})
	n.needs("form", "use standard, or mailgun")
	n.oneOf("secret_env", "secret_file")
	if r.SecretEnv+r.SecretFile == "" {
		n.fault("name its file with secret_file, or a variable of the server with secret_env", "the secret is missing: anybody could say what became of messages")
	}
	return r
}
