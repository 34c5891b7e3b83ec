package apppassword

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mailbox"
)

// ParsePlain parses the message of PLAIN (RFC 4616): an authorization identity, which must be empty or the user, the user and the password.
func ParsePlain(message []byte) (user, password string, err error) {
	parts := strings.Split(string(message), "\x00")
	if len(parts) != 3 || parts[0] != "" && parts[0] != parts[1] {
		return "", "", malformed("the message of PLAIN must be an empty string, the user name and the app password, with NUL between them")
	}
	return parts[1], parts[2], nil
}

func malformed(what string) error {
	return &fanfare.Error{Code: fanfare.Invalid, Message: what}
}

// maxMessageBytes limits the messages of a client. They have about 200 bytes.
const maxMessageBytes = 4096

// A Conversation is the server's side of SCRAM-SHA-256. It is a sasl.Server of github.com/emersion/go-sasl. The last message of the server is
// a challenge to which the client answers with an empty response, as in protocols that send no data with success.
type Conversation struct {
	checker *Checker
	ctx     context.Context //nolint:containedctx // sasl.Server has no context, and a conversation belongs to one command
	from    netip.Addr

	step        int
	login       login
	gs2         string
	firstBare   string // of the client
	serverFirst string
	nonce       string
	account     mailbox.Account
}

// SCRAM begins a conversation.
func (c *Checker) SCRAM(ctx context.Context, from netip.Addr) *Conversation {
	return &Conversation{checker: c, ctx: ctx, from: from}
}

// Account returns the account after a successful conversation.
func (c *Conversation) Account() mailbox.Account { return c.account }

// Next answers a message of the client; nil asks for the first one. After an error the conversation has ended.
func (c *Conversation) Next(response []byte) (challenge []byte, done bool, err error) {
	if len(response) > maxMessageBytes {
		return nil, false, malformed("the message is too long")
	}
	switch c.step {
	case 0:
		if response == nil {
			return []byte{}, false, nil
		}
		challenge, err = c.first(string(response))
	case 1:
		challenge, err = c.final(string(response))
	case 2:
		if c.step++; len(response) == 0 {
			return nil, true, nil
		}
		err = malformed("the last message must be empty")
	default:
		err = errors.New("the conversation has ended")
	}
	if c.step++; err != nil {
		c.step = 4
	}
	return challenge, false, err
}

// first answers the first message of the client: n,,n=user,r=nonce.
func (c *Conversation) first(message string) ([]byte, error) {
	parts := strings.SplitN(message, ",", 3)
	if len(parts) != 3 {
		return nil, malformed("the first message of SCRAM is not complete")
	}
	switch {
	case strings.HasPrefix(parts[0], "p="):
		return nil, malformed("channel binding is not supported: use SCRAM-SHA-256 without it")
	case parts[0] != "n" && parts[0] != "y":
		return nil, malformed("the first message of SCRAM must begin with n or y")
	}
	c.gs2, c.firstBare = parts[0]+","+parts[1]+",", parts[2]
	attributes := strings.Split(parts[2], ",")
	if len(attributes) < 2 || !strings.HasPrefix(attributes[0], "n=") || !strings.HasPrefix(attributes[1], "r=") { // m= first is an unknown mandatory extension
		return nil, malformed("the first message of SCRAM must have n= and r=")
	}
	user, ok := decodeName(attributes[0][2:])
	if authzid, given := strings.CutPrefix(parts[1], "a="); !ok || parts[1] != "" && (!given || authzid != attributes[0][2:]) {
		return nil, malformed("the name in the first message of SCRAM is not valid, or the authorization identity is another one")
	}
	clientNonce := attributes[1][2:]
	if clientNonce == "" || strings.ContainsFunc(clientNonce, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, malformed("the nonce in the first message of SCRAM is not valid")
	}
	var err error
	if c.login, err = c.checker.find(c.ctx, user, c.from); err != nil {
		return nil, err
	}
	if c.login.ambiguous {
		return nil, &fanfare.Error{Code: fanfare.Unauthenticated, Message: "several services have an account with this address", Hint: "log in with address/service as the user name"}
	}
	c.nonce = clientNonce + rand.Text()
	c.serverFirst = "r=" + c.nonce + ",s=" + base64.StdEncoding.EncodeToString(c.login.salt) + ",i=" + strconv.Itoa(c.login.iterations)
	return []byte(c.serverFirst), nil
}

// decodeName decodes =2C and =3D.
func decodeName(name string) (string, bool) {
	rest := strings.NewReplacer("=2C", "", "=3D", "").Replace(name)
	if strings.Contains(rest, "=") {
		return "", false
	}
	return strings.NewReplacer("=2C", ",", "=3D", "=").Replace(name), true
}

// final answers the last message of the client: c=header,r=nonce,p=proof. It compares the proof with each app password of the account.
func (c *Conversation) final(message string) ([]byte, error) {
	withoutProof, encoded, ok := cutLast(message, ",p=")
	attributes := strings.Split(withoutProof, ",")
	proof, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(proof) != sha256.Size || len(attributes) < 2 || attributes[0] != "c="+base64.StdEncoding.EncodeToString([]byte(c.gs2)) || attributes[1] != "r="+c.nonce {
		return nil, malformed("the final message of SCRAM is not valid")
	}
	authMessage := c.firstBare + "," + c.serverFirst + "," + withoutProof
	var matches []candidate
	for _, k := range c.login.candidates {
		clientKey := make([]byte, sha256.Size)
		subtle.XORBytes(clientKey, proof, sign(k.StoredKey, authMessage))
		if stored := sha256.Sum256(clientKey); subtle.ConstantTimeCompare(stored[:], k.StoredKey) == 1 {
			matches = append(matches, k)
		}
	}
	if c.account, err = c.checker.result(c.ctx, c.login, matches, c.from); err != nil {
		return nil, err
	}
	return []byte("v=" + base64.StdEncoding.EncodeToString(sign(matches[0].ServerKey, authMessage))), nil
}

func cutLast(text, separator string) (before, after string, ok bool) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i], text[i+len(separator):], true
	}
	return text, "", false
}
