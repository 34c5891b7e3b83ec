package settings

import (
	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/jmespath"
)

// SignIn is how people and programs sign in, beside addresses and access tokens.
type SignIn struct {
	TLS  TLS  `yaml:"tls"`
	OIDC OIDC `yaml:"oidc"`
}

// TLS is about the listener.
type TLS struct {
	Certificate string `yaml:"certificate"` // file with the chain, PEM; "": no TLS
	Key         string `yaml:"key"`         // file with the key, PEM
	// ClientAuthorities is a file with the certificates of authorities, PEM. The holder of a certificate that one of them has signed is a super-administrator.
	ClientAuthorities string `yaml:"clientAuthorities"`
}

// OIDC is about tokens of OpenID Connect.
type OIDC struct {
	DiscoveryURL string `yaml:"discoveryUrl"` // "": no OpenID Connect
	ClientID     string `yaml:"clientId"`     // for which tokens must be; "": any
	// IsAdmin and IsAuthorizedUser are JMESPath filters of the claims.
	IsAdmin          string `yaml:"isAdmin"`          // "": nobody
	IsAuthorizedUser string `yaml:"isAuthorizedUser"` // "": everyone with a valid token
}

// Filters returns the filters of the claims; nil for an empty one.
func (o *OIDC) Filters() (isAdmin, isAuthorizedUser *jmespath.Filter, err error) {
	if o.IsAdmin != "" {
		if isAdmin, err = jmespath.CompileFilter(o.IsAdmin); err != nil {
			return nil, nil, err
		}
	}
	if o.IsAuthorizedUser != "" {
		if isAuthorizedUser, err = jmespath.CompileFilter(o.IsAuthorizedUser); err != nil {
			return nil, nil, err
		}
	}
	return isAdmin, isAuthorizedUser, nil
}

func (s *SignIn) check() (wrong []*fanfare.Error) {
	t := &s.TLS
	if (t.Certificate == "") != (t.Key == "") {
		wrong = append(wrong, invalid("/tls", "set certificate and key, or neither", "only one of certificate and key is set"))
	}
	if t.ClientAuthorities != "" && t.Certificate == "" {
		wrong = append(wrong, invalid("/tls/clientAuthorities", "set certificate and key as well", "client certificates need TLS"))
	}
	for pointer, text := range map[string]string{"/oidc/isAdmin": s.OIDC.IsAdmin, "/oidc/isAuthorizedUser": s.OIDC.IsAuthorizedUser} {
		if _, err := jmespath.CompileFilter(text); err != nil {
			wrong = append(wrong, invalid(pointer, "write a JMESPath filter of the claims, such as contains(groups, 'admins')", "%s", err.Error()))
		}
	}
	if s.OIDC.DiscoveryURL == "" && s.OIDC != (OIDC{}) {
		wrong = append(wrong, invalid("/oidc/discoveryUrl", "set it to the URL of the issuer's discovery document", "the issuer is missing"))
	}
	return wrong
}
