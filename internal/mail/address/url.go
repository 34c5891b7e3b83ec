package address

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"fanfare.dev/fanfare"
)

// MaxURLBytes is the maximum length of a URL in its normal form.
const MaxURLBytes = 2048

// ParseURL checks the URL of a webhook and returns its normal form (RFC 3986, section 6.2):
// scheme and host in lower case, an internationalized name in ASCII, no default port, a path,
// and escapes where they are needed. The URL is http or https, without a user and a fragment.
// The error is a *fanfare.Error without a pointer and does not quote the URL, which may contain
// a secret.
func ParseURL(s string) (normal string, err error) {
	u, wrong := readURL(s)
	if wrong != "" {
		return "", &fanfare.Error{Code: fanfare.Invalid, Message: "the URL cannot receive a POST request: " + wrong, Hint: "write it as https://example.org/path"}
	}
	normal = u.Scheme + "://" + u.Host + u.EscapedPath()
	if u.RawQuery != "" || u.ForceQuery {
		normal += "?" + escapeURL(u.RawQuery)
	}
	if len(normal) > MaxURLBytes {
		return "", &fanfare.Error{Code: fanfare.Invalid, Message: "the URL is longer than " + strconv.Itoa(MaxURLBytes) + " bytes"}
	}
	return normal, nil
}

func readURL(s string) (u *url.URL, wrong string) {
	switch {
	case len(s) > MaxURLBytes:
		return nil, "it is longer than " + strconv.Itoa(MaxURLBytes) + " bytes"
	case !utf8.ValidString(s):
		return nil, "it is not valid UTF-8"
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }):
		return nil, "it contains a space, a backslash or a control character"
	case strings.Contains(s, "#"):
		return nil, "it has a fragment"
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, "it is not a valid URL"
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, "it does not begin with https://"
	case u.User != nil:
		return nil, "it contains a user name"
	case u.Opaque != "" || u.Hostname() == "":
		return nil, "it has no host"
	}
	if u.Host, wrong = hostPort(u); wrong != "" {
		return nil, wrong
	}
	if u.Path == "" {
		u.Path, u.RawPath = "/", ""
	}
	return u, ""
}

// hostPort returns the host of a URL in its normal form, with the port unless it is the default
// of the scheme.
func hostPort(u *url.URL) (host, wrong string) {
	name, port := u.Hostname(), u.Port()
	if port == "" && strings.HasSuffix(u.Host, ":") {
		return "", "the port after the colon is missing"
	}
	if port != "" {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 {
			return "", "its port is not a number from 1 to 65535"
		}
		port = strconv.FormatUint(number, 10)
	}
	if u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" {
		port = ""
	}
	if address, err := netip.ParseAddr(name); err == nil {
		if address.Zone() != "" {
			return "", "its IP address has a zone"
		}
		name = address.String()
		if address.Is6() {
			name = "[" + name + "]"
		}
	} else if name, wrong = normalHost(name); wrong != "" {
		return "", wrong
	}
	if port != "" {
		name += ":" + port
	}
	return name, ""
}

// normalHost returns a host name in lower case and in ASCII. It refuses a name whose last label
// is a number, which some programs interpret as an IP address.
func normalHost(name string) (normal, wrong string) {
	if !isASCII(name) {
		ascii, err := idna.Lookup.ToASCII(name)
		if err != nil {
			return "", "its host is not a valid internationalized name"
		}
		name = ascii
	}
	name = strings.ToLower(name)
	last := name[strings.LastIndexByte(name, '.')+1:]
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", "its host is not a host name"
		}
	}
	if len(name) > 253 || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return "", "its host is not a host name"
	}
	return name, ""
}

// escapeURL escapes the characters that a query may not contain.
func escapeURL(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c > ' ' && c < 0x7f && !strings.ContainsRune("\"<>^`{|}", rune(c)) {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + strings.ToUpper(strconv.FormatUint(uint64(c)+0x100, 16)[1:]))
		}
	}
	return b.String()
}

// HostPort returns the host and the port of a URL in its normal form. All webhooks of one host
// and port share their limits.
func HostPort(normal string) string {
	scheme, rest, _ := strings.Cut(normal, "://")
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		rest = rest[:end]
	}
	if _, _, err := net.SplitHostPort(rest); err == nil {
		return rest
	}
	if scheme == "http" {
		return rest + ":80"
	}
	return rest + ":443"
}
