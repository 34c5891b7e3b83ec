package wire

import "time"

// An AppPasswordRequest is an app password to create.
type AppPasswordRequest struct {
	Name string `json:"name,omitempty" maxLength:"128" doc:"name that tells the app passwords of a mailbox apart, such as phone"`
}

// An AppPassword is an app password of a mailbox, without the password itself.
type AppPassword struct {
	ID        string    `json:"id" doc:"id of the app password, such as app-1"`
	Name      string    `json:"name" doc:"name that tells the app passwords of a mailbox apart; empty if it has none"`
	CreatedAt time.Time `json:"created_at" doc:"time of its creation"`
	UsedAt    time.Time `json:"used_at,omitzero" doc:"time of about the last login; absent: never used"`
}

// A NewAppPassword is an app password with what a mail program needs to log in. It is shown only once: the server stores only verifiers.
type NewAppPassword struct {
	AppPassword
	User     string `json:"user" doc:"user name for the login"`
	Password string `json:"password" doc:"the password; shown only once"`
}

// AppPasswordList has the app passwords of a mailbox, in the order of their creation.
type AppPasswordList struct {
	AppPasswords []AppPassword `json:"app_passwords" doc:"the app passwords, without the passwords themselves"`
}

// A MailboxAlias is a further address of a mailbox.
type MailboxAlias struct {
	Address   string    `json:"address" doc:"the alias, in lower case"`
	CreatedAt time.Time `json:"created_at" doc:"time of its creation"`
}

// MailboxAliasList has the aliases of a mailbox, in the order of their addresses.
type MailboxAliasList struct {
	Aliases []MailboxAlias `json:"aliases" doc:"the aliases"`
}

// A MailboxTokenRequest says which pages may use a token, and for how long.
type MailboxTokenRequest struct {
	Origins  []string `json:"origins,omitempty" maxItems:"10" doc:"origins of the pages that may use the token, such as https://app.example.org; without any, only programs that are no browsers may use it"`
	Lifetime string   `json:"lifetime,omitempty" doc:"how long the token is valid, from 1m to 24h; default: 1h"`
}

// A MailboxToken opens one mailbox by JMAP.
type MailboxToken struct {
	Token     string    `json:"token" doc:"the token; send it to JMAP in the header Authorization: Bearer"`
	User      string    `json:"user" doc:"mail address of the mailbox"`
	ExpiresAt time.Time `json:"expires_at" doc:"time until which the token is valid"`
}

// MailboxDNS has the DNS records by which mail programs find the server.
type MailboxDNS struct {
	Records []DNSRecord `json:"records" doc:"the records, for the zone of the domain"`
}

// A DNSRecord is one record of a zone.
type DNSRecord struct {
	Name  string `json:"name" doc:"absolute name, which ends with a dot"`
	Type  string `json:"type" enum:"SRV,CNAME" doc:"type of the record"`
	Value string `json:"value" doc:"value as it is written in a zone file"`
}
