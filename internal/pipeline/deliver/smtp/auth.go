package smtp

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/emersion/go-sasl"
)

// pickMechanism returns the first mechanism that both sides support: PLAIN (RFC 4616), then
// LOGIN, the only one of some old relays.
func pickMechanism(offered []string, username, password string) (sasl.Client, error) {
	switch {
	case slices.Contains(offered, sasl.Plain):
		return sasl.NewPlainClient("", username, password), nil
	case slices.Contains(offered, sasl.Login):
		return &login{[]string{username, password}}, nil
	case len(offered) == 0:
		return nil, fmt.Errorf("the peer does not offer AUTH")
	}
	return nil, fmt.Errorf("the peer offers AUTH %s, but neither PLAIN nor LOGIN", strings.Join(offered, " "))
}

// login answers challenges by their order, since their wording differs between peers. It
// sends nothing before the first challenge.
type login struct{ answers []string }

func (a *login) Start() (string, []byte, error) { return sasl.Login, nil, nil }

func (a *login) Next([]byte) ([]byte, error) {
	if len(a.answers) == 0 {
		return nil, sasl.ErrUnexpectedServerChallenge
	}
	answer := a.answers[0]
	a.answers = a.answers[1:]
	return []byte(answer), nil
}

// encode encodes a SASL message; an empty one is "=" (RFC 4954, section 4).
func encode(p []byte) string {
	if len(p) == 0 {
		return "="
	}
	return base64.StdEncoding.EncodeToString(p)
}

func decode(p []byte) ([]byte, error) {
	return base64.StdEncoding.AppendDecode(nil, p)
}
