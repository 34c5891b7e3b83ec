package core

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

type namesArguments struct {
	InAccount
	Names []string     `json:"names"`
	Count *UnsignedInt `json:"count"`
}

// newServer returns a server with methods that show how calls are made.
func newServer() *Server {
	return &Server{
		Capabilities: []string{Capability, "urn:test"},
		Limits:       Limits{MaxCallsInRequest: 8, MaxObjectsInGet: 5, MaxObjectsInSet: 5},
		Logger:       slog.New(slog.DiscardHandler),
		Methods: map[string]Method{
			"Core/echo": Echo(),
			"Names/get": On("urn:test", func(_ context.Context, _ *Call, a *namesArguments) (any, error) {
				return map[string]any{"names": a.Names}, nil
			}),
			"Names/set": On("urn:test", func(_ context.Context, c *Call, a *namesArguments) (any, error) {
				c.Created("k", "N1")
				return map[string]any{}, nil
			}),
			"Names/resolve": On("urn:test", func(_ context.Context, c *Call, a *namesArguments) (any, error) {
				id, ok := c.Resolve("#k")
				return map[string]any{"id": id, "ok": ok}, nil
			}),
			"Names/copy": On("urn:test", func(ctx context.Context, c *Call, a *namesArguments) (any, error) {
				return c.Then(ctx, map[string]any{"copied": 1}, "Names/get", map[string]any{"accountId": c.Account, "names": a.Names})
			}),
			"Names/break": On("urn:test", func(context.Context, *Call, *namesArguments) (any, error) { return nil, errors.New("secret detail") }),
			"Names/absent": On("urn:test", func(context.Context, *Call, *namesArguments) (any, error) {
				return nil, &fanfare.Error{Code: fanfare.Unavailable, Message: "the database is away"}
			}),
			"Names/huge": On("urn:test", func(context.Context, *Call, *namesArguments) (any, error) {
				return map[string]string{"text": strings.Repeat("x", MaxResponse/2)}, nil
			}),
		},
	}
}

// responses calls methods and returns the responses as JSON.
func responses(t *testing.T, calls string) string {
	t.Helper()
	r, refused := ParseRequest([]byte(`{"using":["urn:ietf:params:jmap:core","urn:test"],"methodCalls":` + calls + `}`))
	if refused != nil {
		t.Fatal(refused)
	}
	response, refused := newServer().Run(t.Context(), "a1", r, "s")
	if refused != nil {
		t.Fatal(refused)
	}
	text, err := json.Marshal(response.Responses)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSection33CallsAreAnsweredInOrder(t *testing.T) {
	got := responses(t, `[["Core/echo",{"b":1,"a":[2]},"x"],["Names/get",{"accountId":"a1","names":["n"]},"y"],["Core/echo",{},"x"]]`)
	if want := `[["Core/echo",{"b":1,"a":[2]},"x"],["Names/get",{"names":["n"]},"y"],["Core/echo",{},"x"]]`; got != want {
		t.Errorf("got %s", got)
	}
}

func TestSection331OnlyKnownCapabilitiesAreAccepted(t *testing.T) {
	_, err := newServer().Run(t.Context(), "a1", &Request{Using: []string{Capability, "https://example.com/apis/foobar"}}, "s")
	if err == nil || err.Type != UnknownCapability || err.Status != 400 {
		t.Errorf("got %v", err)
	}
}

func TestSection361LimitsTheCallsOfARequest(t *testing.T) {
	r := &Request{Using: []string{Capability}, Calls: slices.Repeat([]Invocation{{"Core/echo", json.RawMessage("{}"), "0"}}, 8)}
	if response, err := newServer().Run(t.Context(), "a1", r, "s"); err != nil || len(response.Responses) != 8 {
		t.Fatalf("8 calls: %v", err)
	}
	r.Calls = append(r.Calls, r.Calls[0])
	if _, err := newServer().Run(t.Context(), "a1", r, "s"); err == nil || err.Type != LimitExceeded || err.Limit != "maxCallsInRequest" {
		t.Errorf("9 calls: %v", err)
	}
}

func TestSection362NamesTheErrorOfACall(t *testing.T) {
	for call, want := range map[string]string{
		`["Names/unknown",{},"0"]`:                                       UnknownMethod,
		`["names/get",{"accountId":"a1"},"0"]`:                           UnknownMethod,
		`["Names/get",{},"0"]`:                                           InvalidArguments,
		`["Names/get",{"accountId":null},"0"]`:                           InvalidArguments,
		`["Names/get",{"accountId":1},"0"]`:                              InvalidArguments,
		`["Names/get",{"accountId":"a2"},"0"]`:                           AccountNotFound,
		`["Names/get",{"accountId":"a1","names":"x"},"0"]`:               InvalidArguments,
		`["Names/get",{"accountId":"a1","NAMES":["x"]},"0"]`:             InvalidArguments,
		`["Names/get",{"accountId":"a1","count":-1},"0"]`:                InvalidArguments,
		`["Names/get",{"accountId":"a1","count":9007199254740992},"0"]`:  InvalidArguments,
		`["Names/get",{"accountId":"a1","count":1.5},"0"]`:               InvalidArguments,
		`["Names/break",{"accountId":"a1"},"0"]`:                         ServerFail,
		`["Names/absent",{"accountId":"a1"},"0"]`:                        ServerUnavailable,
		`["Names/get",{"accountId":"a1","#names":{"resultOf":"0"}},"0"]`: InvalidResultReference,
	} {
		got := responses(t, "["+call+`,["Core/echo",{},"next"]]`)
		if !strings.HasPrefix(got, `[["error",{`) || !strings.Contains(got, `"type":"`+want+`"},"0"],["Core/echo",{},"next"]]`) {
			t.Errorf("%s: got %s, want %s and the next response", call, got, want)
		}
		if strings.Contains(got, "secret detail") {
			t.Errorf("%s shows an internal error: %s", call, got)
		}
	}
}

func TestSection362AMethodNeedsItsCapability(t *testing.T) {
	r, _ := ParseRequest([]byte(`{"using":["urn:ietf:params:jmap:core"],"methodCalls":[["Names/get",{"accountId":"a1"},"0"]]}`))
	response, err := newServer().Run(t.Context(), "a1", r, "s")
	if err != nil || response.Responses[0].Name != "error" || !strings.Contains(string(response.Responses[0].Arguments), UnknownMethod) {
		t.Errorf("got %v, %v", response, err)
	}
}

func TestSection37ReferencesTakeEarlierResults(t *testing.T) {
	first := `["Core/echo",{"list":[{"id":"t1","emailIds":["a","b"]},{"id":"t2","emailIds":[]},{"id":"t/3","emailIds":["c"],"~":"d"}]},"r"],`
	get := func(reference string) string {
		return responses(t, `[`+first+`["Names/get",{"accountId":"a1","#names":`+reference+`},"g"]]`)
	}
	for path, want := range map[string]string{
		"/list/*/emailIds":     `{"names":["a","b","c"]}`,
		"/list/*/id":           `{"names":["t1","t2","t/3"]}`,
		"/list/0/emailIds":     `{"names":["a","b"]}`,
		"/list/*/emailIds/*":   `{"names":["a","b","c"]}`,
		"/list/3/emailIds":     InvalidResultReference,
		"/list/00/emailIds":    InvalidResultReference,
		"/list/-/emailIds":     InvalidResultReference,
		"/list/*/missing":      InvalidResultReference,
		"list":                 InvalidResultReference,
		"/list/2/id/x":         InvalidResultReference,
		"/list/2/~2":           InvalidResultReference,
		"/list/2/~0":           InvalidArguments, // a string is not a list
		"/list/0/id":           InvalidArguments,
		"/list/*/emailIds/0/x": InvalidResultReference,
	} {
		if got := get(`{"resultOf":"r","name":"Core/echo","path":"` + path + `"}`); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	for _, reference := range []string{
		`{"resultOf":"q","name":"Core/echo","path":"/list"}`, `{"resultOf":"r","name":"Names/get","path":"/list"}`, `{"resultOf":"g","name":"Names/get","path":"/names"}`,
		`{"resultOf":"r","name":"Core/echo"}`, `"r"`, `null`,
	} {
		if got := get(reference); !strings.Contains(got, InvalidResultReference) {
			t.Errorf("%s: got %s", reference, got)
		}
	}
}

func TestSection37AnArgumentHasOneValue(t *testing.T) {
	got := responses(t, `[["Core/echo",{"x":[]},"r"],["Names/get",{"accountId":"a1","names":[],"#names":{"resultOf":"r","name":"Core/echo","path":"/x"}},"g"]]`)
	if !strings.Contains(got, InvalidArguments) {
		t.Errorf("got %s", got)
	}
}

func TestSection37AReferenceToAnErrorFails(t *testing.T) {
	got := responses(t, `[["Names/unknown",{},"r"],["Names/get",{"accountId":"a1","#names":{"resultOf":"r","name":"Names/unknown","path":"/x"}},"g"]]`)
	if !strings.Contains(got, InvalidResultReference) {
		t.Errorf("got %s", got)
	}
}

func TestSection33CreationIDsLastAsLongAsARequest(t *testing.T) {
	set, resolve := `["Names/set",{"accountId":"a1"},"0"]`, `["Names/resolve",{"accountId":"a1"},"1"]`
	if got := responses(t, "["+set+","+resolve+"]"); !strings.Contains(got, `{"id":"N1","ok":true}`) {
		t.Errorf("got %s", got)
	}
	if got := responses(t, "["+resolve+"]"); !strings.Contains(got, `"ok":false`) {
		t.Errorf("without a record: got %s", got)
	}
	r, _ := ParseRequest([]byte(`{"using":["urn:test"],"createdIds":{"k":"N7"},"methodCalls":[` + resolve + `,` + set + `]}`))
	response, err := newServer().Run(t.Context(), "a1", r, "s")
	if err != nil || !strings.Contains(string(response.Responses[0].Arguments), `"N7"`) || response.CreatedIDs["k"] != "N1" {
		t.Errorf("got %v, %v", response, err)
	}
}

func TestSection54AnImplicitCallRespondsWithTheSameID(t *testing.T) {
	got := responses(t, `[["Names/copy",{"accountId":"a1","names":["n"]},"c"],["Core/echo",{},"d"]]`)
	if want := `[["Names/copy",{"copied":1},"c"],["Names/get",{"names":["n"]},"c"],["Core/echo",{},"d"]]`; got != want {
		t.Errorf("got %s", got)
	}
}

func TestResultsOfARequestAreBounded(t *testing.T) {
	got := responses(t, `[["Names/huge",{"accountId":"a1"},"0"],["Names/huge",{"accountId":"a1"},"1"],["Core/echo",{},"2"]]`)
	if !strings.Contains(got, RequestTooLarge) || !strings.HasSuffix(got, `["Core/echo",{},"2"]]`) || len(got) > MaxResponse {
		t.Errorf("%d bytes, the end is %s", len(got), got[len(got)-200:])
	}
}
