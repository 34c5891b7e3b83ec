package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// ratesPeriod is the period without the parameter since.
const ratesPeriod = 24 * time.Hour

// ratesOf selects the values of minutes.
type ratesOf struct {
	Named
	Since time.Time `query:"since" doc:"start of the period (RFC 3339); default: 24 hours before its end"`
	Until time.Time `query:"until" doc:"end of the period (RFC 3339); default: now"`
	Step  string    `query:"step" default:"1m" maxLength:"10" doc:"length of a step: a whole number of minutes from 1m to 1h"`
}

func (a *API) rateRoutes() {
	read(a, huma.Operation{OperationID: "get-rates", Method: http.MethodGet, Path: "/v1/rates", Tags: []string{"operations"},
		Summary: "Get the values of the last days over time",
		Description: "The server stores values each minute, and keeps them for 8 days. They are those of the whole server, also if the request specifies a service; therefore, the key must be for all services. " +
			"A response has at most 1,500 steps. In a step of several minutes, counts are sums, and amounts of waiting work are maxima."}, mayRead, a.rates)
}

func (a *API) rates(ctx context.Context, c caller, in *ratesOf) (wire.Rates, error) {
	if c.principal.Service != "" {
		return wire.Rates{}, &fanfare.Error{Code: fanfare.Forbidden, Message: "this request needs rights in all services, because the values are those of the whole server",
			Hint: "use a key for all services with the scope read, or ask an administrator for a role in all services"}
	}
	step, err := time.ParseDuration(in.Step)
	if err != nil {
		step = 0 // which is refused
	}
	if in.Until.IsZero() {
		in.Until = a.now()
	}
	if in.Since.IsZero() {
		in.Since = in.Until.Add(-ratesPeriod)
	}
	r, err := a.deps.Rates.Rates(ctx, in.Since, in.Until, step)
	r.Rates = orEmpty(r.Rates)
	return r, err
}
