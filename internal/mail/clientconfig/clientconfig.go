// Package clientconfig describes the mail servers of mailboxes to mail programs: as the settings that a person enters, as the document that
// Thunderbird and others read (Mozilla's autoconfig format 1.1), and as DNS records (RFC 6186, RFC 8314, RFC 8620).
//
// State. None: everything follows from the settings of the server. A description therefore never depends on the addresses that exist.
package clientconfig

import (
	"encoding/xml"
	"strconv"
	"strings"
)

// Servers are the servers that mail programs connect to. A port of 0 means that there is no such server.
type Servers struct {
	Host        string // public host name of all of them; "" means that there are none
	IMAPS       int    // IMAP with TLS from the first byte
	IMAP        int    // IMAP with STARTTLS
	Submissions int    // SMTP with TLS from the first byte
	Submission  int    // SMTP with STARTTLS

	WebHost string // host name of the API over HTTPS; "" means that it has none
	WebPort int
}

// A Security is how a connection is encrypted, in the words of the autoconfig format.
type Security string

// The kinds of encryption.
const (
	TLS      Security = "SSL" // from the first byte
	STARTTLS Security = "STARTTLS"
)

// A Server is one server.
type Server struct {
	Host     string
	Port     int
	Security Security
}

// Incoming returns the IMAP servers, the preferred one first.
func (s *Servers) Incoming() []Server { return s.offered(s.IMAPS, s.IMAP) }

// Outgoing returns the submission servers, the preferred one first.
func (s *Servers) Outgoing() []Server { return s.offered(s.Submissions, s.Submission) }

// offered lists the servers that exist. RFC 8314, section 3, prefers TLS from the first byte.
func (s *Servers) offered(tls, startTLS int) (list []Server) {
	if s.Host == "" {
		return nil
	}
	if tls != 0 {
		list = append(list, Server{s.Host, tls, TLS})
	}
	if startTLS != 0 {
		list = append(list, Server{s.Host, startTLS, STARTTLS})
	}
	return list
}

// document is the root of the autoconfig format.
type document struct {
	XMLName  xml.Name `xml:"clientConfig"`
	Version  string   `xml:"version,attr"`
	Provider provider `xml:"emailProvider"`
}

type provider struct {
	ID       string  `xml:"id,attr"`
	Domain   string  `xml:"domain"`
	Name     string  `xml:"displayName"`
	Short    string  `xml:"displayShortName"`
	Incoming []entry `xml:"incomingServer"`
	Outgoing []entry `xml:"outgoingServer"`
}

type entry struct {
	Type           string   `xml:"type,attr"`
	Host           string   `xml:"hostname"`
	Port           int      `xml:"port"`
	Security       Security `xml:"socketType"`
	User           string   `xml:"username"`
	Authentication string   `xml:"authentication"`
}

// Autoconfig returns the autoconfig document for the addresses of a domain. The user name is the placeholder for the whole address, which mail
// programs replace.
func (s *Servers) Autoconfig(domain string) ([]byte, error) {
	p := provider{ID: domain, Domain: domain, Name: domain, Short: domain}
	for _, i := range s.Incoming() {
		p.Incoming = append(p.Incoming, entryOf("imap", i))
	}
	for _, o := range s.Outgoing() {
		p.Outgoing = append(p.Outgoing, entryOf("smtp", o))
	}
	body, err := xml.MarshalIndent(document{Version: "1.1", Provider: p}, "", "  ")
	if err != nil {
		return nil, err
	}
	return append([]byte(xml.Header), append(body, '\n')...), nil
}

func entryOf(kind string, s Server) entry {
	return entry{Type: kind, Host: s.Host, Port: s.Port, Security: s.Security, User: "%EMAILADDRESS%", Authentication: "password-cleartext"} // over TLS
}

// A Record is a DNS record. Names and the host names in values are absolute: they end with a dot.
type Record struct{ Name, Type, Value string }

// Records returns the DNS records by which mail programs find the servers for the addresses of a domain. A service that the server does not
// offer has the target ".", which tells programs not to look for it (RFC 6186, section 3.4).
func (s *Servers) Records(domain string) []Record {
	list := []Record{
		s.service("_imaps._tcp", domain, 0, s.IMAPS, s.Host),
		s.service("_imap._tcp", domain, 10, s.IMAP, s.Host),
		s.service("_pop3s._tcp", domain, 0, 0, ""),
		s.service("_pop3._tcp", domain, 0, 0, ""),
		s.service("_submissions._tcp", domain, 0, s.Submissions, s.Host),
		s.service("_submission._tcp", domain, 10, s.Submission, s.Host),
	}
	if s.WebHost != "" {
		list = append(list, s.service("_jmap._tcp", domain, 0, s.WebPort, s.WebHost))
		if own := "autoconfig." + domain; own != s.WebHost && len(s.Incoming()) > 0 {
			list = append(list, Record{own + ".", "CNAME", s.WebHost + "."})
		}
	}
	return list
}

// service returns an SRV record (RFC 2782).
func (*Servers) service(name, domain string, priority, port int, host string) Record {
	r := Record{name + "." + strings.TrimSuffix(domain, ".") + ".", "SRV", "0 0 0 ."}
	if port != 0 && host != "" {
		r.Value = strconv.Itoa(priority) + " 1 " + strconv.Itoa(port) + " " + host + "."
	}
	return r
}
