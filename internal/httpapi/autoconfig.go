package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/address"
)

// The paths of the autoconfig document: the first on the domain of the addresses, the second on its subdomain autoconfig.
const (
	autoconfigOfDomain    = "/.well-known/autoconfig/mail/config-v1.1.xml"
	autoconfigOfSubdomain = "/mail/config-v1.1.xml"
)

// mailClientRoutes serves the descriptions of the mail servers. They do not depend on the addresses that exist.
func (a *API) mailClientRoutes() {
	dns := huma.Operation{OperationID: "get-mailbox-dns", Method: http.MethodGet, Path: "/v1/mailbox-dns", Tags: []string{"mailboxes"},
		Summary: "Get the DNS records by which mail programs find the server"}
	dns.Description = "The records are for the domain of the addresses (RFC 6186, RFC 8314 and RFC 8620). They follow from the settings of the server. A record with the target \".\" says that the server does not offer the service."
	type OfDomain struct {
		Named
		Domain string `query:"domain" required:"true" doc:"domain of the addresses, such as example.org"`
	}
	read(a, dns, mayRead, func(_ context.Context, _ caller, in *OfDomain) (wire.MailboxDNS, error) {
		domain, ok := mailDomain("x@" + in.Domain)
		if !ok {
			return wire.MailboxDNS{}, &fanfare.Error{Code: fanfare.Invalid, Message: "domain is not a domain for mail addresses", Hint: "write it as example.org"}
		}
		list := wire.MailboxDNS{Records: []wire.DNSRecord{}}
		for _, r := range a.deps.MailServers.Records(domain) {
			list.Records = append(list.Records, wire.DNSRecord{Name: r.Name, Type: r.Type, Value: r.Value})
		}
		return list, nil
	})
	if len(a.deps.MailServers.Incoming()) == 0 {
		return
	}
	a.mux.HandleFunc("GET "+autoconfigOfDomain, a.autoconfig)
	a.mux.HandleFunc("GET "+autoconfigOfSubdomain, a.autoconfig)
}

// autoconfig serves the document that Thunderbird and other mail programs read. It needs no key, and is the same for all addresses of a domain.
func (a *API) autoconfig(w http.ResponseWriter, r *http.Request) {
	x := w.(*responseWriter)
	domain, ok := mailDomain(r.URL.Query().Get("emailaddress"))
	if !ok {
		domain = a.deps.MailServers.Host
	}
	body, err := a.deps.MailServers.Autoconfig(domain)
	if err != nil {
		a.fail(x, err)
		return
	}
	x.Header().Set("Content-Type", "text/xml; charset=utf-8")
	x.Header().Set("X-Content-Type-Options", "nosniff")
	httpio.WriteAll(x, http.StatusOK, body)
}

// mailDomain returns the domain of a mail address in its ASCII form.
func mailDomain(of string) (domain string, ok bool) {
	normal, err := address.Parse(of)
	if err != nil {
		return "", false
	}
	path, _, err := address.Route("x" + normal[strings.LastIndexByte(normal, '@'):])
	return strings.TrimPrefix(path, "x@"), err == nil
}
