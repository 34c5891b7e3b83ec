package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// The resources of the configuration. A document applies all of them at once.
type (
	// A Service is a tenant.
	Service = wire.Service
	// A Topic is a named kind of event, with its rules.
	Topic = wire.Topic
	// A Rule is a condition of a topic that subscriptions choose by name.
	Rule = wire.Rule
	// A Template is how a message is written; every change makes a version.
	Template = wire.Template
	// ChannelSettings is a channel as it is configured.
	ChannelSettings = wire.ChannelSettings
	// Receipts say how the provider behind a channel tells what became of messages.
	Receipts = wire.Receipts
	// A DKIMKey is a private key that mail is signed with.
	DKIMKey = wire.DKIMKey
	// A Reserve is the part of a channel's connections that less urgent lanes leave free.
	Reserve = wire.Reserve
)

// A Kept is one configured thing, and the version that was read of it.
type Kept[T any] struct {
	Value T
	ETag  string // a Put with it is refused where the thing was changed since
}

// A Collection is the configured things of one kind.
type Collection[T any] struct {
	c            *Client
	path, member string
}

// Services are all services that the key may see; only an operator's key changes them.
func (c *Client) Services() Collection[Service] {
	return Collection[Service]{c.ForService(""), "/v1/services", "services"}
}

// Topics are those of the service.
func (c *Client) Topics() Collection[Topic] { return Collection[Topic]{c, "/v1/topics", "topics"} }

// Rules are those of a topic, in the order that picks the template.
func (c *Client) Rules(topic string) Collection[Rule] {
	return Collection[Rule]{c, "/v1/topics/" + url.PathEscape(topic) + "/rules", "rules"}
}

// Channels are those of the service.
func (c *Client) Channels() Collection[ChannelSettings] {
	return Collection[ChannelSettings]{c, "/v1/channels", "channels"}
}

// All yields them in the order of their names, of rules in the topic's order. It
// ends at the first error, which is its last pair.
func (k Collection[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return List[T](ctx, k.c, k.path, k.member, nil)
}

// Get returns one.
func (k Collection[T]) Get(ctx context.Context, name string) (one Kept[T], err error) {
	r := get(k.path+"/"+url.PathEscape(name), nil)
	r.tag = &one.ETag
	err = k.c.call(ctx, r, nil, &one.Value)
	return one, err
}

// Put makes one, or replaces it as a whole. Where what is given has an ETag, it is
// refused if the thing was changed since that was read (precondition_failed).
func (k Collection[T]) Put(ctx context.Context, name string, given Kept[T]) (now Kept[T], err error) {
	r := request{method: http.MethodPut, path: k.path + "/" + url.PathEscape(name), header: ifMatch(given.ETag), tag: &now.ETag, repeatable: given.ETag == ""}
	err = k.c.call(ctx, r, given.Value, &now.Value)
	return now, err
}

// Delete deletes one; one that is not there is no error. etag may be "".
func (k Collection[T]) Delete(ctx context.Context, name, etag string) error {
	return k.c.call(ctx, request{method: http.MethodDelete, path: k.path + "/" + url.PathEscape(name), header: ifMatch(etag), repeatable: etag == ""}, nil, nil)
}
