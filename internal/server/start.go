package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/adminkey"
	"fanfare.dev/fanfare/internal/admin/backup"
	"fanfare.dev/fanfare/internal/admin/control"
	"fanfare.dev/fanfare/internal/admin/preview"
	"fanfare.dev/fanfare/internal/admin/privacy"
	"fanfare.dev/fanfare/internal/admin/rates"
	"fanfare.dev/fanfare/internal/admin/recovery"
	"fanfare.dev/fanfare/internal/admin/status"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/cluster"
	"fanfare.dev/fanfare/internal/compat/notify"
	"fanfare.dev/fanfare/internal/compat/notify/files"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/ctxlock"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/datadir/serverkeys"
	"fanfare.dev/fanfare/internal/filetype"
	"fanfare.dev/fanfare/internal/jmap/push"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/mail/dkimkeys"
	"fanfare.dev/fanfare/internal/mail/feedback"
	"fanfare.dev/fanfare/internal/mail/inbound"
	"fanfare.dev/fanfare/internal/mail/mx"
	"fanfare.dev/fanfare/internal/mail/recipients"
	"fanfare.dev/fanfare/internal/mail/signedlink"
	"fanfare.dev/fanfare/internal/mail/submission"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/mailbox/hints"
	"fanfare.dev/fanfare/internal/notifier"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
	"fanfare.dev/fanfare/internal/pipeline/deliver/remote"
	"fanfare.dev/fanfare/internal/pipeline/deliver/webhook"
	"fanfare.dev/fanfare/internal/pipeline/digest"
	"fanfare.dev/fanfare/internal/pipeline/dispatch"
	"fanfare.dev/fanfare/internal/pipeline/due"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
	"fanfare.dev/fanfare/internal/pipeline/ingest/messages"
	"fanfare.dev/fanfare/internal/pipeline/match"
	"fanfare.dev/fanfare/internal/pipeline/match/replica"
	"fanfare.dev/fanfare/internal/pipeline/match/topicstate"
	"fanfare.dev/fanfare/internal/pipeline/match/verify"
	"fanfare.dev/fanfare/internal/pipeline/record"
	"fanfare.dev/fanfare/internal/pipeline/workercall"
	"fanfare.dev/fanfare/internal/progress"
	"fanfare.dev/fanfare/internal/sends"
	"fanfare.dev/fanfare/internal/session/broker"
	"fanfare.dev/fanfare/internal/session/fleet"
	"fanfare.dev/fanfare/internal/session/sessionlog"
	"fanfare.dev/fanfare/internal/signin"
	"fanfare.dev/fanfare/internal/signin/oidc"
	controlstore "fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/database"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/maintain"
	"fanfare.dev/fanfare/internal/store/retry"
)

// startComponents starts all components, each after those on which it depends. A node of a cluster starts them under a lease.
func (s *Server) startComponents(ctx context.Context, o Options, started time.Time, lease *cluster.Lease) error {
	c := &components{Server: s, version: o.Version, started: started, lease: lease, dir: s.config.DataDir, index: condition.New(), exclusive: ctxlock.New()}
	for _, start := range []func(context.Context) error{
		c.openDatabase, c.openMailboxes, c.openRegistry, c.startSessions, c.openBus, c.startRecorder, c.startDelivery, c.startMaintenance, c.startVerifier, c.startMatching, c.startIntake, c.startMessages, c.startFeedback, c.startMail, c.listen, c.openNotifyBC,
	} {
		if err := start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// components are all components of a server, in start order. Each method starts the component in its name.
type components struct {
	*Server
	version   string
	started   time.Time
	lease     *cluster.Lease // nil: this server is alone
	dir       string
	index     *condition.Index
	exclusive ctxlock.Lock // held by a backup, an erasure, a move, or an archiving of states

	// openDatabase
	backupNote *backup.Note // nil if the server was not restored
	restored   bool         // this is the first start after a restore
	db         *database.DB
	store      *deliveries.Store
	standby    *deliveries.Store // may lag slightly
	control    *controlstore.Store
	signIns    *signin.SignIns
	oidc       *oidc.Client // nil: nobody can sign in with OpenID Connect
	days       []fanfare.Day
	highest    fanfare.EventSeq

	// openMailboxes
	mailboxes  *mailbox.Store
	recipients *recipients.Directory

	// openRegistry
	delivering *remote.Hub // the other nodes that deliver; nil: this server is alone
	channels   *channels.Channels
	faults     *channels.Faults
	capture    channels.Capture
	sites      *mx.Sites
	keys       serverkeys.Keys
	registry   *registry.Registry
	feed       *replica.Feed // the matching index with its copies on other nodes; nil: this server is alone

	// startSessions
	sessions *broker.Broker
	fleet    *fleet.Hub
	workers  *workercall.Workers

	// openBus
	bus       *bus.Bus
	busLost   bool // the batches of the embedded bus are lost, but the record is not
	powerLost bool // in durability relaxed
	recovery  recovery.Recovery

	// startRecorder
	due       *due.Scheduler
	switches  *control.Switches
	retrying  ctxlock.Lock // held during a retry of parked work
	notifier  *notifier.Notifier
	callbacks *notify.Callbacks // nil without notify_listen
	recorder  *record.Recorder

	// startDelivery
	dispatch *dispatch.Stage

	// startMaintenance
	archive *maintain.StateArchive
	states  *topicstate.States
	history *maintain.History
	rates   *status.Rates

	// startVerifier
	verifier *verify.Verifier

	// startMatching
	samples   *match.Samples
	audiences *match.Audiences

	// startIntake
	disk     *datadir.DiskFloor
	ingester *ingest.Ingester
	minutes  *rates.Sampler
	idsKnown chan struct{} // closed when the ingester knows the ids of recent events

	// startMessages
	accepting *privacy.Barrier
	messages  *messages.Messages
	submitter *submission.Submitter
	sends     *sends.Sends
	files     *files.Files // behind links in messages

	// startFeedback
	inbound *inbound.Server // nil without inbound mail

	// startMail
	mail *mailService // on a node of a cluster, without the protocols that all nodes serve
}

// openDatabase opens the database and lists its days.
func (c *components) openDatabase(ctx context.Context) (err error) {
	if c.backupNote, err = backup.ReadNote(c.dir); err != nil {
		return err
	}
	c.restored = c.backupNote.New()
	c.progress.Begin("open the database", 0)
	if c.db, err = database.OpenUnder(ctx, c.databaseLease(), &c.config, c.version, c.log); err != nil {
		return err
	}
	c.onStop(c.db.Close)
	c.watch(c.db)
	c.api.Starting("")
	c.store, c.standby, c.control = deliveries.New(c.db), deliveries.New(c.db.Late()), controlstore.New(c.db)
	if c.days, err = c.store.Days(ctx); err != nil {
		return err
	}
	c.highest, err = c.store.Highest(ctx)
	return err
}

// openMailboxes opens the mailboxes of subscribers.
func (c *components) openMailboxes(context.Context) error {
	o := c.mailboxOptions()
	var member *hints.Member
	if c.node != nil {
		member = c.node.hints.Join()
		c.onStopDo(member.Leave)
		o.Announce = member.Announce
	}
	c.mailboxes = mailbox.New(c.db, o)
	c.onStopDo(c.mailboxes.Close)
	c.recipients = c.recipientsOf(c.db, c.mailboxes)
	if member != nil {
		member.Attach(c.mailboxes)
		c.background(func(ctx context.Context) { c.mailboxes.Follow(ctx, member.Again()) })
	}
	return nil
}

// openRegistry reads the registry and the keys of the server.
func (c *components) openRegistry(ctx context.Context) (err error) {
	resolver := resolverAt(c.config.Resolver)
	c.sites = mx.New(mx.Options{LookupMX: resolver.LookupMX, Clock: c.clock})
	c.onStopDo(c.sites.Stop)
	c.capture = channels.NewCapture(c.config.Capture, c.config.AllowRecipients)
	c.faults = &channels.Faults{}
	if c.node != nil {
		c.delivering = remote.NewHub(remote.HubOptions{Changed: func() { c.channels.NodesChanged() }, Leads: c.lease.Valid, Logger: c.log})
		c.onStopDo(c.delivering.Close)
	}
	c.channels = channels.New(channels.Options{
		Capture: c.capture, Sites: c.sites, Records: dkimkeys.OpenRecords(c.dir, resolver.LookupTXT, c.clock, c.log),
		Lease: c.config.Lease, Nodes: c.delivering, Remote: !c.config.Delivers(), Clock: c.clock, Logger: c.log,
	})
	if c.keys, err = serverkeys.Read(c.dir); err != nil {
		return err
	}
	if c.node != nil {
		if err := c.keys.Adopt(ctx, c.node.tables, c.node.key); err != nil {
			return err
		}
	}
	vault := serverkeys.NewVault(c.keys.Sealing)
	if c.node != nil {
		vault.ShareWith(c.node.tables, c.node.key)
	}
	c.registry, err = registry.Open(ctx, registry.Options{
		Vault:   vault,
		Issuers: c.issuers.URLs(),
		Store:   c.control, Conditions: c.conditions(), ParseAddress: address.Parse, ParseURL: address.ParseURL, ParsePhone: address.ParsePhone,
		CheckKey: c.capture.CheckKey, CompileTemplate: preview.CompileTemplate(int(c.config.MaxAttachments)), DryRunTemplate: preview.DryRunTemplate, DryRunDigest: preview.DryRunDigest, Files: filetype.Policy(c.config.AllowAttachments),
		WaitInFlight: c.awaitEnded, Now: c.clock.Now, SuppressionKey: c.keys.Suppression.Bytes, Progress: c.progress.Begin("load subscriptions", 0),
		StoreOutage: c.outage.Err, MaxWait: c.db.Patience(), Logger: c.log,
	})
	if err != nil {
		return err
	}
	c.onStopDo(c.registry.Close)
	roles := signin.NewRoles(c.issuers.URLs(), c.issuers.Roles, c.registry.Snapshot)
	if c.signIns, err = signin.Open(ctx, c.control, c.registry, roles, c.clock, c.log); err != nil {
		return err
	}
	if len(c.issuers.Issuers) > 0 {
		c.oidc = oidc.New(oidc.Options{Issuers: c.issuers.Issuers, Claims: roles.Claims, Clock: c.clock})
	}
	c.background(c.signIns.Run)
	knowsKey := func(secret string) bool {
		who, known := c.registry.Authenticate(secret)
		return known && who.Operator() || c.backupNote.New() && len(c.registry.Keys("")) > 0 // a backup contains keys, but no admin.key
	}
	if err := c.db.CheckPairing(c.dir, knowsKey); err != nil {
		return err
	}
	if err := c.keys.Check(c.registry.SuppressionCount(), c.highest > 0 && (c.config.PublicURL != "" || hasReturnAddress(c.registry)), channels.SignedByServer(c.registry), c.registry.SealedKeys()); err != nil {
		return err
	}
	if c.node != nil {
		if err := c.keys.Share(ctx, c.node.tables, c.node.key); err != nil {
			return err
		}
	}
	if err := c.keys.Save(); err != nil {
		return err
	}
	if c.node != nil && slices.ContainsFunc(c.registry.Keys(""), adminkey.Lasting) {
		return nil // another node has its file
	}
	return adminkey.Ensure(ctx, c.dir, c.registry)
}

// conditions returns the matching index that the registry changes. In a cluster, it also changes the copies on other nodes.
func (c *components) conditions() registry.Conditions {
	if c.node == nil {
		return c.index
	}
	c.feed = replica.NewFeed(replica.FeedOptions{
		Index: c.index, Logger: c.log,
		Subscriptions: func(ctx context.Context, visit func(condition.Key, *condition.Entry) error) error {
			return c.registry.AllConditionEntries(ctx, visit)
		},
	})
	c.onStopDo(c.feed.Close)
	return c.feed
}

// matchingNodes returns the function that lists the other nodes that match events; nil for a server that is alone.
func (c *components) matchingNodes() func() []match.Node {
	if c.feed == nil {
		return nil
	}
	return func() []match.Node {
		nodes := c.feed.Nodes()
		all := make([]match.Node, len(nodes))
		for i, n := range nodes {
			all[i] = n
		}
		return all
	}
}

// startRecorder starts to record outcomes, and reads the open work of the previous run.
func (c *components) startRecorder(ctx context.Context) error {
	c.due = due.New(c.store, c.bus, c.clock, c.log)
	c.notifier = notifier.New(c.store, c.control, c.registry, c.clock, c.log)
	if c.config.NotifyListen != "" {
		c.callbacks = notify.NewCallbacks(c.registry, c.log)
		c.notifier.CallBack(c.callbacks)
	}
	c.recorder = record.Start(record.Options{
		Store: c.store, Clock: c.clock, Logger: c.log, WorkDue: c.due.Add, WantsCallback: c.notifier.Hears, CallbacksRecorded: c.notifier.MarkDay,
		OnAllFailed: func(ref fanfare.EventRef) {
			ctx := c.channels.Context()
			if err := retry.WhileAway(ctx, func() error { return c.switches.PauseFailing(context.Background(), ref) }); err != nil {
				c.log.Log(ctx, bus.FailureLevel(ctx, err), "a failing broadcast could not be paused", "event", ref.String(), "error", err)
			}
		},
	})
	c.onStopDo(c.recorder.Stop)
	c.onStopDo(func() { // when everything has been sent that is sent before the stop
		if c.minutes != nil {
			c.minutes.Finish()
		}
	})
	if giveUp := c.giveUp; c.db.Postgres() != nil {
		c.giveUp = func() error { // components that stop earlier may wait for an outcome, which a closed database does not accept
			err := giveUp()
			c.recorder.Stop()
			return err
		}
	}
	c.switches, c.retrying = control.New(control.Options{
		Registry: c.registry, Store: c.store, Recorder: c.recorder, Due: c.due, Faults: c.faults, Clock: c.clock, Logger: c.log,
		DrainRelay: c.channels.DrainRelay, ApplyRates: c.channels.Reconcile, DropStopped: c.channels.Sweep, RatesChanged: c.channels.FlowsChanged,
	}), ctxlock.New()
	if err := c.loadOpen(ctx); err != nil || !c.busLost {
		return err
	}
	c.progress.Begin("replace the lost bus", 0)
	if c.powerLost {
		if err := c.skipNumbers(ctx); err != nil {
			return err
		}
	}
	open, err := c.recovery.ReplaceBus(ctx, c.days, c.due, c.powerLost, c.db.SyncAll)
	if err != nil {
		return err
	}
	if c.powerLost {
		c.log.Warn("the power was lost in durability relaxed: what was acknowledged shortly before is lost, and open broadcasts continue", "broadcasts", open, "sync_interval", c.config.SyncInterval.String())
		return nil
	}
	c.log.Warn("the bus was lost and was created again: open broadcasts continue, but events that were not matched are lost", "broadcasts", open)
	return nil
}

// loadOpen reads the open broadcasts, due work and switches.
func (c *components) loadOpen(ctx context.Context) error {
	phase := c.progress.Begin("load open broadcasts", 0)
	for _, day := range c.days {
		err := c.store.Open(ctx, day, func(seq fanfare.EventSeq, messages int64, progress fanfare.Progress) {
			phase.Add(1)
			c.recorder.Begin(fanfare.EventRef{Day: day, Seq: seq}, messages, progress)
		})
		if err != nil {
			return err
		}
		if err := c.due.Load(ctx, day); err != nil {
			return err
		}
	}
	return c.switches.Load(ctx, c.days)
}

// startDelivery starts the channels and the dispatch to them.
func (c *components) startDelivery(ctx context.Context) (err error) {
	o := dispatch.Options{
		Bus: c.bus, Store: c.store, Registry: c.registry, Recorder: c.recorder, Control: c.switches, Domains: c.config.InboundDomains, Sites: c.sites,
		Templates: compose.NewTemplates(c.registry), Attachments: compose.NewAttachments(c.registry, c.store), Refuses: c.capture.Refuses, Clock: c.clock, Logger: c.log,
	}
	if c.config.PublicURL != "" {
		if o.Links, err = signedlink.NewSigner(c.config.PublicURL, c.keys.Links.Bytes); err != nil {
			return err
		}
	}
	o.Workers = c.workers
	if c.delivering != nil {
		o.Signers = c.delivering
	}
	if o.Returns, err = signedlink.NewReturnSigner(c.keys.Links.Bytes); err != nil {
		return err
	}
	c.dispatch = dispatch.New(o)
	c.progress.Begin("start the channels", 0)
	err = c.channels.Start(ctx, channels.Parts{
		Registry: c.registry, Recorder: c.recorder, Faults: c.faults, Release: c.switches.ReleaseSoon, Gate: c.dispatch.Gate, Flows: c.switches.Rates(), Waiting: c.bus.Waiting,
		Dispatch: func(ctx context.Context, l channels.Loop) (func(context.Context), error) {
			return c.dispatch.Loop(ctx, dispatch.Target(l))
		},
		ReplyRules: c.config.ReplyRules, Files: channels.NewFileMarks(c.dir, c.keys.Links.Bytes, c.started), WebhookKey: c.keys.Webhooks.Bytes, Networks: c.config.Networks(), Abort: c.leaseLost(),
		NodeLease: c.sendingLease(), Mailboxes: c.mailboxes, Workers: c.workers,
	})
	if err != nil {
		return err
	}
	c.background(c.channels.Tasks()...)
	c.onStopDo(func() { c.channels.Drain(c.config.DrainTimeout) })
	return nil
}

// startMaintenance reads the states of topics, and starts the loops for due work, the index of the history, retention and
// rates.
func (c *components) startMaintenance(ctx context.Context) error {
	c.states = topicstate.New()
	c.archive = maintain.NewStateArchive(c.states, c.store, c.control, c.registry.KeySeries, c.exclusive, c.log)
	if err := c.archive.Load(ctx, c.days, c.progress.Begin("load topic states", 0)); err != nil {
		return fmt.Errorf("states: %w", err)
	}
	c.progress.Begin("clean up the index of deliveries", 0)
	c.history = maintain.NewHistory(c.store, c.log)
	if err := c.history.Sweep(ctx); err != nil {
		return err
	}
	c.rates = status.NewRates(c.recorder, c.channels)
	retention := maintain.NewRetention(maintain.RetentionOptions{Store: c.store, Open: c.recorder.Open, Archive: c.archive.Archive, Age: time.Duration(c.config.Retention) * 24 * time.Hour, Clock: c.clock, Logger: c.log})
	sessions := sessionlog.Retention{Log: sessionlog.New(c.db), Age: c.config.SessionRetention, Clock: c.clock, Logger: c.log}
	c.background(sessions.Run, c.mailboxes.Run, c.mailboxes.IndexSearches)
	c.background(c.due.Run, c.switches.Run, c.history.Index, c.history.Merge, retention.Run, c.archive.Run, c.rates.Run, c.dispatch.ResumePaused)
	return nil
}

// startVerifier starts to check the results of the index.
func (c *components) startVerifier(context.Context) error {
	c.verifier = verify.New(verify.Options{
		Index: c.index, Store: c.registry, Share: verify.Share(c.config.MatchCheck), Meter: verify.ProcessMeter{Start: time.Now()}, Now: c.clock.Now, Logger: c.log,
	})
	if n := len(c.registry.Quarantined()); n > 0 {
		c.log.Warn("conditions are in quarantine because the index returned wrong results for them: they are evaluated without the index, see fanfare status", "conditions", n)
	}
	return nil
}

// startMatching starts digests and matching.
func (c *components) startMatching(ctx context.Context) error {
	current := &match.CurrentState{Verifier: c.verifier, Registry: c.registry, States: c.states, Store: c.store}
	digests := digest.New(digest.Options{
		Store: c.store, Slots: c.registry, Clock: c.clock, Live: c.registry.Live, Logger: c.log, Topic: c.digestTopic,
		State: func(ctx context.Context, slot digest.Slot, visit func(*fanfare.AcceptedEvent, []fanfare.Hit) error) error {
			return current.Visit(ctx, slot.Service, slot.Number, visit)
		},
		Publish: func(ctx context.Context, run *fanfare.AcceptedEvent) error {
			group, err := eventgroup.Encode(run)
			if err == nil {
				_, err = c.bus.AppendEvents(ctx, run.Lane, group)
			}
			return err
		},
	})
	if err := digests.Load(ctx, c.days, c.progress.Begin("load digests", int64(len(c.days)))); err != nil {
		return fmt.Errorf("digests: %w", err)
	}
	c.background(digests.Run)
	c.samples, c.audiences = match.NewSamples(), match.NewAudiences(c.registry)
	c.idsKnown = make(chan struct{})
	var repeats func(*fanfare.AcceptedEvent) bool
	if c.lease != nil { // only a former leader appends an event that this node does not know
		repeats = func(p *fanfare.AcceptedEvent) bool { return c.ingester.Repeats(p) }
	}
	for _, lane := range fanfare.Lanes {
		m, err := match.New(ctx, lane, match.Options{Bus: c.bus, Index: c.index, Verifier: c.verifier, Registry: c.registry, Store: c.store, States: c.states, Samples: c.samples,
			Audiences: c.audiences, Digests: matchDigests{digests}, Recorder: c.recorder, Nodes: c.matchingNodes(), Repeats: repeats, Held: c.switches.Held, Clock: c.clock, Logger: c.log})
		if err != nil {
			return err
		}
		c.background(func(ctx context.Context) {
			if repeats != nil {
				select {
				case <-c.idsKnown:
				case <-ctx.Done():
				}
			}
			m.Run(ctx)
		})
	}
	return nil
}

// matchDigests adapts digests to matching.
type matchDigests struct{ *digest.Scheduler }

// Begin begins a round of matching.
func (d matchDigests) Begin() match.DigestRound { return d.Scheduler.Begin() }

// digestTopic returns how a digest reports the events of a topic.
func (c *components) digestTopic(service, name string) (t digest.Topic, ok bool) {
	topic, ok := c.registry.Topic(service, name)
	if !ok {
		return t, false
	}
	settings := topic.LatestDigest()
	t.Max = settings.Max
	if settings.Key != "" {
		t.Key = settings.KeyOf
	}
	t.Template, ok = c.registry.DigestTemplate(topic)
	return t, ok
}

// startIntake starts to accept events from services, and events that notify services about deliveries.
func (c *components) startIntake(ctx context.Context) error {
	c.disk = &datadir.DiskFloor{Dir: c.dir, Floor: c.config.DiskFloor}
	c.ingester = ingest.Start(ingest.Options{Log: c.bus, Topics: topics{c.registry, c.audiences}, Clock: c.clock, Floor: c.acceptsEvents})
	c.onStopDo(c.ingester.Stop)
	next, err := c.bus.NextEvent(ctx)
	if err != nil {
		return err
	}
	var phase *progress.Phase
	err = c.bus.ReplayEvents(ctx, c.clock.Now().Add(-ingest.Horizon), func(seq uint64, _ time.Time, group []byte) error {
		if phase == nil {
			phase = c.progress.Begin("read the ids of recent events", int64(next-seq))
		}
		phase.Add(1)
		events, err := eventgroup.Decode(group, seq)
		c.ingester.LoadIDs(events)
		return err
	})
	if err != nil {
		return fmt.Errorf("known ids: %w", err)
	}
	close(c.idsKnown)
	c.notifier.PostTo(c.ingester)
	c.background(c.notifier.Run)
	c.background(func(ctx context.Context) { ingest.Trim(ctx, c.bus.TrimEvents, c.clock, c.log) })
	c.minutes = rates.New(rates.Options{Store: c.control, Totals: c.totals, Levels: c.levels, Clock: c.clock, Logger: c.log})
	c.background(c.minutes.Run)
	return nil
}

// totals returns the counters whose values are stored for each minute.
func (c *components) totals() rates.Totals {
	outcomes, _ := c.recorder.Totals()
	return rates.Totals{Events: c.ingester.Accepted(), Outcomes: outcomes}
}

// levels returns the amounts of waiting work that are stored for each minute.
func (c *components) levels(ctx context.Context) (l rates.Levels, err error) {
	open, pending, deferred := c.recorder.Backlog()
	l = rates.Levels{Broadcasts: int64(open), Pending: pending, Deferred: deferred}
	backlog, err := c.bus.Backlog(ctx)
	if err != nil {
		return l, err
	}
	l.Batches = int64(backlog.Batches)
	waiting, err := c.bus.WaitingEventGroups(ctx)
	for lane, groups := range waiting {
		l.EventGroups[lane] = int64(groups)
	}
	return l, err
}

// startFeedback starts to process bounces, complaints, receipts and unsubscribe emails.
func (c *components) startFeedback(context.Context) (err error) {
	c.feedback = feedback.New(feedback.Options{Store: c.store, Control: c.control, Registry: c.registry, Recorder: c.recorder, Signer: c.dispatch.Returns, Bounced: c.notifybcBounced(), Clock: c.clock, Logger: c.log})
	c.background(c.feedback.Run)
	c.background((&control.Housekeeping{Registry: c.registry, Clock: c.clock, Logger: c.log, AuditAge: time.Duration(max(c.config.AuditDays, c.config.Retention)) * 24 * time.Hour}).Run)
	c.inbound, err = c.listenInbound()
	return err
}

// startMail binds the addresses for mail programs and mail servers. A node of a cluster has bound most of them already.
func (c *components) startMail(ctx context.Context) (err error) {
	pushes := push.NewSubscriptions(push.Options{
		Store: c.mailboxes, Clock: c.clock, Logger: c.log,
		Client: &http.Client{
			Transport:     webhook.PublicTransport(c.config.Networks()),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	})
	c.background(pushes.Run)
	c.mail, err = c.newMailService(ctx, mailOptions{store: c.mailboxes, to: c.recipients, reading: c.node == nil, sending: true, linkKey: c.keys.Links.Bytes, submitter: c.submitter, pushes: pushes})
	if err == nil {
		c.onStopDo(c.mail.stop)
	}
	return err
}

// resolverAt returns a resolver that queries the DNS server at an address, or the servers of the machine if it is "".
func resolverAt(server string) *net.Resolver {
	if server == "" {
		return net.DefaultResolver
	}
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server)
	}}
}

// hasReturnAddress reports whether a channel has return addresses.
func hasReturnAddress(people *registry.Registry) bool {
	return slices.ContainsFunc(people.Channels(), func(c *catalog.Channel) bool { return c.Returns != "" })
}

// awaitEnded waits until no message to an ended subscription is being sent.
func (c *components) awaitEnded(subscription fanfare.RowID) {
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	if err := c.channels.AwaitOff(ctx, subscription); err != nil {
		c.log.Warn("a subscription ended while a slow relay was still accepting a message for it", "subscription", fanfare.SubscriptionID(subscription))
	}
}
