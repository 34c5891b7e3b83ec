package httpapi

import (
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/limits"
	"fanfare.dev/fanfare/internal/httpapi/openapi"
	"fanfare.dev/fanfare/internal/httpapi/recipientpages"
	"fanfare.dev/fanfare/internal/httpapi/statusfeed"
	"fanfare.dev/fanfare/internal/people/pages"
)

// An API handles all HTTP requests of the server. It is safe for concurrent use.
type API struct {
	deps    Dependencies
	mux     *http.ServeMux
	spec    huma.API
	log     *slog.Logger
	now     func() time.Time
	bulk    chan struct{} // one slot for each bulk body that is being read
	waiting chan struct{} // one slot for each request that waits for a message
	exports chan struct{} // one slot for each list that is being written as CSV
	page    *pages.Writer

	running        atomic.Int64 // requests
	access         *accessLog
	origins        httpio.Origins
	keyLimits      *limits.KeyLimits
	wrongKeys      *limits.WrongKeys
	crossOrigin    *http.CrossOriginProtection // of requests with the cookie of the console
	recipientPages *recipientpages.Handlers
	feed           *statusfeed.Feed // of the status

	stop     sync.Once
	stopping chan struct{} // closed by Stop
	changes  requestCount  // running
}

// maxBulk limits the bulk bodies that are read at the same time. Further ones get 503.
const maxBulk = 16

// New returns an API that uses parts.
func New(parts Dependencies) *API {
	a := &API{deps: parts, mux: http.NewServeMux(), log: parts.Log, now: parts.Now,
		bulk: make(chan struct{}, maxBulk), waiting: make(chan struct{}, maxWaiting), exports: make(chan struct{}, maxExports), page: pages.NewWriter(), stopping: make(chan struct{}), changes: requestCount{underWay: new(sync.WaitGroup)}}
	if a.log == nil {
		a.log = slog.Default()
	}
	if a.now == nil {
		a.now = time.Now
	}
	a.access = &accessLog{log: a.log, what: parts.AccessLog}
	a.origins, a.keyLimits, a.wrongKeys = parts.Origins, limits.NewKeyLimits(parts.Limits), &limits.WrongKeys{Proxies: parts.Proxies}
	a.crossOrigin = http.NewCrossOriginProtection()
	a.recipientPages = recipientpages.NewHandlers(recipientpages.Handlers{Unsubscriber: parts.Unsubscriber, Signups: parts.Signups, Choices: parts.Choices, MailPrograms: parts.MailPrograms, From: a.wrongKeys.ClientAddress, Now: a.now}, parts.Seals)
	a.spec = humago.New(a.mux, a.openAPI())
	a.spec.UseMiddleware(a.admit)

	a.applyRoutes()
	a.configurationRoutes()
	a.subscriptionRoutes()
	a.subscriptionListRoutes()
	a.subscriberRoutes()
	a.personalRoutes()
	a.eraseRoutes()
	a.suppressionRoutes()
	a.eventRoutes()
	a.messageRoutes()
	a.sendRoutes()
	a.traceRoutes()
	a.explainRoutes()
	a.conditionRoutes()
	a.dryRunRoutes()
	a.stateRoutes()
	a.secretRoutes()
	a.previewRoutes()
	a.lintRoutes()
	a.statusRoutes()
	a.liveRoutes()
	a.rateRoutes()
	a.capturedRoutes()
	a.controlRoutes()
	a.approvalRoutes()
	a.recallRoutes()
	a.destinationRoutes()
	a.parkingRoutes()
	a.taskRoutes()
	a.settingRoutes()
	a.backupRoutes()
	a.moveRoutes()
	a.nodeRoutes()
	a.sessionRoutes()
	a.workerRoutes()
	a.streamRoutes()
	a.mailboxRoutes()
	a.mailClientRoutes()
	a.mailboxAccountRoutes()
	a.mailboxTokenRoutes()
	a.jmapRoutes()
	a.keyRoutes()
	a.auditRoutes()
	a.healthRoutes()
	a.receiptRoutes()
	a.unsubscribeRoutes()
	a.signupRoutes()
	a.preferenceRoutes()
	a.errorRoutes()
	a.viewerRoutes()
	a.consoleRoutes()
	openapi.Complete(a.spec.OpenAPI())
	return a
}

// Stop stops reading bulk bodies, and ends the streams of mailboxes and of the status. The lines that have arrived are stored and
// answered, and a last line has the number of the line at which the client continues. Stop
// may be called twice.
func (a *API) Stop() {
	a.stop.Do(func() {
		close(a.stopping)
		if a.deps.JMAP != nil {
			a.deps.JMAP.Stop()
		}
	})
}
