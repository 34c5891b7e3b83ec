package channels

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/file"
	"fanfare.dev/fanfare/internal/pipeline/deliver/inbox"
	"fanfare.dev/fanfare/internal/pipeline/deliver/simulate"
	"fanfare.dev/fanfare/internal/pipeline/deliver/smtp"
)

// maxInboxWriters bounds the connections of a channel with the driver inbox: one of them waits for a commit while another fills its
// transaction.
const maxInboxWriters = 4

// idleTimeout is the time after which an idle connection is closed.
const idleTimeout = 30 * time.Second

// settings converts the configuration of a channel for its sender, and creates its drivers.
func (c *Channels) settings(conf *catalog.Channel) (deliver.Settings, error) {
	s := deliver.Settings{
		Connections: conf.Connections, Rate: rate.Inf,
		SendTimeout: min(time.Duration(conf.SendTimeout), c.options.Lease*2/3), IdleTimeout: idleTimeout,
	}
	s.Adapt, s.Multicast, s.Destinations = conf.Adapt, conf.Multicast, destinationLimits(conf)
	s.Reserve.Urgent, s.Reserve.Normal = conf.Reserve.Shares()
	if perSecond := conf.Rate.PerSecond(); perSecond > 0 {
		s.Rate = rate.Limit(perSecond)
	}
	s.Retry, s.RetryBy = retrySchedules(conf)
	switch conf.Driver {
	case "file":
		folder := filepath.Clean(conf.Path)
		s.Relays = []deliver.RelaySettings{{Name: folder, Driver: file.New(folder, c.parts.Files.of(conf.Number)), Weight: 1}}
		s.Connections = max(1, min(s.Connections, 4))
	case "inbox":
		s.Relays = []deliver.RelaySettings{{Name: inbox.Relay, Driver: inbox.New(inbox.Config{Service: conf.Service, Keep: time.Duration(conf.Keep), Store: c.parts.Mailboxes, Clock: c.clock}), Weight: 1}}
		s.Connections = max(1, min(s.Connections, maxInboxWriters))
	case catalog.DriverSimulate:
		s.Relays = []deliver.RelaySettings{{Name: simulate.Relay, Driver: simulate.New(c.clock.Now), Weight: 1}}
	case "worker":
		s.Relays = []deliver.RelaySettings{{Name: conf.Worker, Driver: c.worker(conf, &s), Weight: 1}}
	default:
		s.Direct = conf.Driver == "webhook" && !conf.SendsTexts() // a provider is a relay
		relays, err := (builder{webhookKey: c.parts.WebhookKey, networks: c.parts.Networks, abort: c.parts.Abort}).relays(conf, &s)
		if err != nil {
			return s, err
		}
		s.Relays = relays
	}
	return s, nil
}

// A builder creates the drivers that send over the network.
type builder struct {
	webhookKey []byte // signs for channels without a secret
	networks   []netip.Prefix
	abort      context.Context // when it ends, the drivers close their connections; nil: never
}

// relays creates the drivers of a channel.
func (b builder) relays(conf *catalog.Channel, s *deliver.Settings) (all []deliver.RelaySettings, err error) {
	switch conf.Driver {
	case "smtp":
		for _, hop := range conf.Hops() {
			relay, err := b.smtp(hop.Channel, s)
			if err != nil {
				return nil, err
			}
			all = append(all, deliver.RelaySettings{Name: hop.Name, Driver: relay, Weight: hop.Weight})
		}
		return all, nil
	case "webhook":
		hook, err := b.webhook(conf, s)
		if err != nil {
			return nil, err
		}
		return []deliver.RelaySettings{{Name: "webhook", Driver: hook, Weight: 1, ManyReceivers: !conf.SendsTexts()}}, nil
	}
	return nil, fmt.Errorf("channel %s/%s: unknown driver %q", conf.Service, conf.Name, conf.Driver)
}

// smtp creates the driver for one relay of a channel.
func (b builder) smtp(conf *catalog.Channel, s *deliver.Settings) (driver.Driver, error) {
	password, err := conf.Password()
	if err != nil {
		return nil, err
	}
	config := smtp.Config{
		Address: conf.Relay, Hello: conf.Hello, TLS: conf.TLS, Username: conf.Username, Password: password,
		Grouping: conf.Grouping, SendTimeout: s.SendTimeout, IdleTimeout: s.IdleTimeout, MaxRecipients: conf.Multicast, Abort: b.abort,
	}
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return smtp.New(config), nil
}

// destinationLimits returns the limits of a channel's destinations.
func destinationLimits(conf *catalog.Channel) deliver.Destinations {
	limit := func(d catalog.DestinationSettings) deliver.DestinationLimit {
		return deliver.DestinationLimit{Rate: d.Rate.PerSecond(), Connections: d.Connections}
	}
	limits := deliver.Destinations{Each: limit(conf.Destinations), Only: make(map[string]deliver.DestinationLimit, len(conf.Destinations.Only))}
	for name, own := range conf.Destinations.Only {
		limits.Only[name] = limit(own)
	}
	return limits
}

// retrySchedules returns the retry schedules of a channel: the general one, and those by class of
// reply.
func retrySchedules(conf *catalog.Channel) (deliver.Retry, map[fanfare.Class]deliver.Retry) {
	by := make(map[fanfare.Class]deliver.Retry, len(conf.RetryBy))
	for class, waits := range conf.RetryBy {
		by[class] = retrySchedule(waits)
	}
	return retrySchedule(conf.Retry), by
}

func retrySchedule(waits []catalog.Duration) deliver.Retry {
	schedule := make(deliver.Retry, len(waits))
	for i, wait := range waits {
		schedule[i] = time.Duration(wait)
	}
	return schedule
}

// FileMarks returns the marks by which channels with the file driver distinguish their own
// temporary files from those of others.
type FileMarks struct{ server, run string }

// NewFileMarks returns the marks of one start. A data directory belongs to one server at a time; a
// copy of it elsewhere belongs to another server, although it has the same key.
func NewFileMarks(dir string, key []byte, started time.Time) FileMarks {
	host, _ := os.Hostname() // without it, the directory and the key are sufficient
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "owner of files\x00%s\x00%s\x00%x", host, dir, key))
	return FileMarks{hex.EncodeToString(sum[:6]), strconv.FormatInt(started.UnixNano(), 36)}
}

func (m FileMarks) of(channel uint16) file.TempNames {
	return file.TempNames{Owner: fmt.Sprintf("%sc%d", m.server, channel), Run: m.run}
}
