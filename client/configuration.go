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
	// A Rule is a condition of a topic that subscriptions select by name.
	Rule = wire.Rule
	// A Template holds the texts of a message; every change creates a version.
	Template = wire.Template
	// ChannelSettings is the configuration of a channel.
	ChannelSettings = wire.ChannelSettings
	// Receipts describe how the provider of a channel reports the outcomes of messages.
	Receipts = wire.Receipts
	// A DKIMKey is a private key that signs mail.
	DKIMKey = wire.DKIMKey
	// A Reserve is the part of a channel's connections that less urgent lanes leave free.
	Reserve = wire.Reserve
)

// A Kept is a stored object with its version.
type Kept[T any] struct {
	Value T
	ETag  string // Put with an ETag is refused if the object was changed since
}

// A Collection is all objects of one kind.
type Collection[T any] struct {
	c            *Client
	path, member string
}

// Services returns the services that the key may see. Only an operator's key may change them.
func (c *Client) Services() Collection[Service] {
	return Collection[Service]{c.ForService(""), "/v1/services", "services"}
}

// Topics returns the topics of the service.
func (c *Client) Topics() Collection[Topic] { return Collection[Topic]{c, "/v1/topics", "topics"} }

// Rules returns the rules of a topic, in the order that selects the template.
func (c *Client) Rules(topic string) Collection[Rule] {
	return Collection[Rule]{c, "/v1/topics/" + url.PathEscape(topic) + "/rules", "rules"}
}

// Channels returns the channels of the service.
func (c *Client) Channels() Collection[ChannelSettings] {
	return Collection[ChannelSettings]{c, "/v1/channels", "channels"}
}

// All yields the objects in the order of their names; rules come in the topic's order. It ends at
// the first error, which is its last pair.
func (k Collection[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return List[T](ctx, k.c, k.path, k.member, nil)
}

// Get returns one object.
func (k Collection[T]) Get(ctx context.Context, name string) (one Kept[T], err error) {
	r := get(k.path+"/"+url.PathEscape(name), nil)
	r.tag = &one.ETag
	err = k.c.call(ctx, r, nil, &one.Value)
	return one, err
}

// Put creates an object or replaces it completely. If given has an ETag, the call fails with
// precondition_failed if the object was changed since it was read.
func (k Collection[T]) Put(ctx context.Context, name string, given Kept[T]) (now Kept[T], err error) {
	r := request{method: http.MethodPut, path: k.path + "/" + url.PathEscape(name), header: ifMatch(given.ETag), tag: &now.ETag, repeatable: given.ETag == ""}
	err = k.c.call(ctx, r, given.Value, &now.Value)
	return now, err
}

// Delete deletes an object. It succeeds if the object does not exist. etag may be "".
func (k Collection[T]) Delete(ctx context.Context, name, etag string) error {
	return k.c.call(ctx, request{method: http.MethodDelete, path: k.path + "/" + url.PathEscape(name), header: ifMatch(etag), repeatable: etag == ""}, nil, nil)
}
