package mailboxes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// The capabilities of a request (RFC 8620, section 3.3). The last one is used if the server has it.
const (
	jmapUsing      = `"urn:ietf:params:jmap:core","urn:ietf:params:jmap:mail"`
	jmapSubmission = "urn:ietf:params:jmap:submission"
)

// idleConnection is how long a client keeps an unused connection. The server closes it later, so that no request meets its end.
const idleConnection = time.Minute

// A jmapClient sends one request at a time over a connection of its own. It knows only as much of RFC 8620 and RFC 8621 as the experiments need.
type jmapClient struct {
	http       *http.Client
	user       mailUser
	api        string // URL of method calls
	account    string
	using      string
	submission bool // the server sends mail
}

// A jmapAnswer is the response to one method call.
type jmapAnswer struct {
	name      string
	arguments json.RawMessage
}

func (a *jmapAnswer) UnmarshalJSON(text []byte) error {
	var id string
	parts := []any{&a.name, &a.arguments, &id}
	return json.Unmarshal(text, &parts)
}

// dialJMAP reads the session of a user from a server.
func dialJMAP(ctx context.Context, server string, u mailUser) (*jmapClient, error) {
	c := &jmapClient{http: &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1, IdleConnTimeout: idleConnection}, Timeout: commandPatience}, user: u, using: jmapUsing}
	var session struct {
		APIURL          string                     `json:"apiUrl"`
		Capabilities    map[string]json.RawMessage `json:"capabilities"`
		PrimaryAccounts map[string]string          `json:"primaryAccounts"`
	}
	if err := c.send(ctx, http.MethodGet, server+"/jmap/session", nil, &session); err != nil {
		return nil, err
	}
	c.api, c.account = session.APIURL, session.PrimaryAccounts["urn:ietf:params:jmap:mail"]
	if _, c.submission = session.Capabilities[jmapSubmission]; c.submission {
		c.using += `,"` + jmapSubmission + `"`
	}
	return c, nil
}

// call sends method calls, in which ACCOUNT stands for the account, and returns their responses. An error of a method is an error.
func (c *jmapClient) call(ctx context.Context, calls string) ([]jmapAnswer, error) {
	request := `{"using":[` + c.using + `],"methodCalls":[` + strings.ReplaceAll(calls, "ACCOUNT", c.account) + `]}`
	var response struct {
		MethodResponses []jmapAnswer `json:"methodResponses"`
	}
	if err := c.send(ctx, http.MethodPost, c.api, []byte(request), &response); err != nil {
		return nil, err
	}
	for _, a := range response.MethodResponses {
		if a.name == "error" {
			return nil, fmt.Errorf("the response to %.200s is %.300s", calls, a.arguments)
		}
	}
	return response.MethodResponses, nil
}

// send sends a request and decodes the response.
func (c *jmapClient) send(ctx context.Context, method, url string, body []byte, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.SetBasicAuth(c.user.User, c.user.Password)
	r.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %.300s", url, response.Status, text)
	}
	return json.Unmarshal(text, into)
}
