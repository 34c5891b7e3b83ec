package configurations

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/compat/notifybc/resource"
	"fanfare.dev/fanfare/internal/compat/notifybc/settings"
)

// Kind is the kind of the records.
const Kind = "configuration"

// Names with a meaning.
const (
	subscriptionName = "subscription"
	notificationName = "notification"
	rsaName          = "rsa"
)

const (
	maxNameBytes = 255
	refreshAfter = 30 * time.Second
	readTime     = 5 * time.Second
)

// Configurations are those of one service. They are safe for concurrent use.
type Configurations struct {
	resource.Collection
	base *settings.Subscription
	log  *slog.Logger

	editing sync.Mutex // held while a configuration is checked and stored

	mu      sync.Mutex
	merged  map[string]*settings.Subscription // by service name
	read    time.Time                         // when merged was read; zero: not yet, or it must be read again
	reading bool
}

// New returns the configurations of a service, over the settings of its file.
func New(records resource.Records, service string, base *settings.Subscription, c clock.Clock, log *slog.Logger) *Configurations {
	return &Configurations{Collection: resource.Collection{Records: records, Service: service, Kind: Kind, Clock: c}, base: base, log: log}
}

// Subscription returns the settings of a service name.
func (c *Configurations) Subscription(serviceName string) *settings.Subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.Clock.Now(); (c.read.IsZero() || now.Sub(c.read) >= refreshAfter) && !c.reading {
		c.reading = true
		c.mu.Unlock()
		merged, err := c.load()
		c.mu.Lock()
		c.reading, c.read = false, now
		if err != nil {
			c.log.Error("the configurations of the NotifyBC API cannot be read; the last ones apply", "error", err)
		} else {
			c.merged = merged
		}
	}
	if s := c.merged[serviceName]; s != nil {
		return s
	}
	return c.base
}

// load merges all configurations of subscriptions.
func (c *Configurations) load() (map[string]*settings.Subscription, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	merged := map[string]*settings.Subscription{}
	err := c.Each(ctx, func(r resource.Record) bool {
		serviceName, _ := r["serviceName"].(string)
		if r["name"] != subscriptionName || serviceName == "" {
			return true
		}
		raw, err := json.Marshal(r["value"])
		if err == nil {
			var s settings.Subscription
			if s, err = c.base.Merge(raw); err == nil {
				merged[serviceName] = &s
			}
		}
		if err != nil { // it was valid when it was stored
			c.log.Error("a configuration of the NotifyBC API is not valid", "id", r["id"], "error", err)
		}
		return true
	})
	return merged, err
}

// Changed makes the next request read the configurations again.
func (c *Configurations) Changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = time.Time{}
}

// Routes returns the routes of configurations.
func (c *Configurations) Routes() []resource.Route {
	const all, one = "/configurations", "/configurations/{id}"
	routes := []resource.Route{
		{Method: "POST", Path: all, Handle: c.create},
		{Method: "GET", Path: all, Handle: func(r *resource.Request) (resource.Answer, error) { return c.List(r, resource.All) }},
		{Method: "PATCH", Path: all, Handle: c.patchAll},
		{Method: "GET", Path: all + "/count", Handle: func(r *resource.Request) (resource.Answer, error) { return c.Count(r, resource.All) }},
		{Method: "GET", Path: one, Handle: func(r *resource.Request) (resource.Answer, error) {
			found, err := c.Require(r.Context(), r.PathValue("id"))
			if err != nil {
				return resource.Answer{}, err
			}
			return resource.OK(found)
		}},
		{Method: "PUT", Path: one, Handle: func(r *resource.Request) (resource.Answer, error) { return c.change(r, resource.Replaced) }},
		{Method: "PATCH", Path: one, Handle: func(r *resource.Request) (resource.Answer, error) { return c.change(r, resource.Patched) }},
		{Method: "DELETE", Path: one, Handle: c.delete},
	}
	for i := range routes {
		routes[i].Who = resource.SuperAdmins
	}
	return routes
}

// Check refuses a configuration that is not valid.
func (c *Configurations) Check(r resource.Record) error {
	name, err := resource.Text(r, "name", true, maxNameBytes)
	if err != nil {
		return err
	}
	if _, err := resource.Text(r, "serviceName", false, maxNameBytes); err != nil {
		return err
	}
	value, ok := r["value"]
	switch {
	case !ok || value == nil:
		return resource.Bad("value is required")
	case name == rsaName:
		return resource.Bad("configurations named rsa are not supported: confirmation codes cannot be encrypted")
	case name == notificationName:
		if object, ok := value.(map[string]any); ok && object["rss"] != nil {
			return resource.Bad("value.rss is not supported: publish the items of a feed as notifications")
		}
	case name == subscriptionName:
		raw, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if _, err := c.base.Merge(raw); err != nil {
			return resource.Bad(err.Error())
		}
	}
	return nil
}

// checkUnique refuses a second configuration with the same name and service name.
func (c *Configurations) checkUnique(ctx context.Context, r resource.Record) error {
	serviceName, _ := r["serviceName"].(string)
	taken := false
	err := c.Each(ctx, func(other resource.Record) bool {
		text, _ := other["serviceName"].(string)
		taken = other["name"] == r["name"] && text == serviceName && other["id"] != r["id"]
		return !taken
	})
	if err == nil && taken {
		err = resource.Bad("a configuration with this name and serviceName exists already")
	}
	return err
}

// put checks and stores a configuration.
func (c *Configurations) put(ctx context.Context, r resource.Record) error {
	if err := c.Check(r); err != nil {
		return err
	}
	if err := c.checkUnique(ctx, r); err != nil {
		return err
	}
	err := c.Put(ctx, r)
	c.Changed()
	return err
}

func (c *Configurations) create(r *resource.Request) (resource.Answer, error) {
	body, err := r.Body()
	if err != nil {
		return resource.Answer{}, err
	}
	c.editing.Lock()
	defer c.editing.Unlock()
	created := c.New(resource.WithoutReadOnly(body), &r.Caller)
	if err := c.put(r.Context(), created); err != nil {
		return resource.Answer{}, err
	}
	return resource.OK(created)
}

func (c *Configurations) change(r *resource.Request, change func(old, body resource.Record) resource.Record) (resource.Answer, error) {
	body, err := r.Body()
	if err != nil {
		return resource.Answer{}, err
	}
	c.editing.Lock()
	defer c.editing.Unlock()
	old, err := c.Require(r.Context(), r.PathValue("id"))
	if err != nil {
		return resource.Answer{}, err
	}
	changed := change(old, body)
	c.Touch(changed, &r.Caller)
	if err := c.put(r.Context(), changed); err != nil {
		return resource.Answer{}, err
	}
	return resource.Done()
}

func (c *Configurations) patchAll(r *resource.Request) (resource.Answer, error) {
	body, err := r.Body()
	if err != nil {
		return resource.Answer{}, err
	}
	for _, name := range []string{"name", "serviceName"} {
		if _, ok := body[name]; ok {
			return resource.Answer{}, resource.Bad(name + " must be changed by id, because it is unique")
		}
	}
	c.editing.Lock()
	defer c.editing.Unlock()
	defer c.Changed()
	return c.PatchMany(r, func(old resource.Record) (resource.Record, error) {
		changed := resource.Patched(old, body)
		c.Touch(changed, &r.Caller)
		return changed, c.Check(changed)
	})
}

func (c *Configurations) delete(r *resource.Request) (resource.Answer, error) {
	found, err := c.Require(r.Context(), r.PathValue("id"))
	if err != nil {
		return resource.Answer{}, err
	}
	err = c.ChangeNotifyBCRecords(r.Context(), nil, c.Key(found["id"].(string)))
	c.Changed()
	if err != nil {
		return resource.Answer{}, err
	}
	return resource.Done()
}
