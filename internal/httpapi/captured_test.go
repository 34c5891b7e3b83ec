package httpapi

import (
	"context"
	"io"
	"mime"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/problem"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// oneCaptured is the captured message dlv-1 of service news.
type oneCaptured struct{ deleted []string }

func (o *oneCaptured) find(service, id string) error {
	if id != "dlv-1" || service != "" && service != "news" {
		return problem.NotFound("captured message", id)
	}
	return nil
}

func (o *oneCaptured) List(_ context.Context, service string, q CapturedQuery) ([]wire.CapturedMessage, string, *time.Time, error) {
	if q.Before != "" || o.find(service, "dlv-1") != nil {
		return nil, "", nil, nil //nolint:nilerr // it is not in the list
	}
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	return []wire.CapturedMessage{{ID: "dlv-1", Service: "news", Subject: q.Subject}}, "dlv-1", &at, nil
}

func (o *oneCaptured) Show(_ context.Context, service, id string) (wire.CapturedContent, error) {
	return wire.CapturedContent{CapturedMessage: wire.CapturedMessage{ID: id}}, o.find(service, id)
}

func (o *oneCaptured) HTML(_ context.Context, service, id string) ([]byte, error) {
	return []byte("<p>Hello"), o.find(service, id)
}

func (o *oneCaptured) Source(service, id string) (io.ReadCloser, int64, error) {
	const text = "Subject: <script>\r\n\r\nHello"
	return io.NopCloser(strings.NewReader(text + "more")), int64(len(text)), o.find(service, id)
}

func (o *oneCaptured) Attachment(_ context.Context, service, id string, number int) (string, []byte, error) {
	if number != 1 {
		return "", nil, problem.NotFound("attachment", "2")
	}
	return `Grüße "x";.html`, []byte("<script>"), o.find(service, id)
}

func (o *oneCaptured) Delete(service, id string) error {
	if err := o.find(service, id); err != nil {
		return err
	}
	o.deleted = append(o.deleted, id)
	return nil
}

func (o *oneCaptured) Clear(_ context.Context, service string) (int, error) {
	o.deleted = append(o.deleted, "all of "+service)
	return 1, nil
}

func TestContentOfCapturedMessagesRunsNothing(t *testing.T) {
	a := newWorld().api(func(d *Dependencies) { d.Captured = &oneCaptured{} })
	for path, want := range map[string][2]string{
		"html": {"text/html; charset=utf-8", "<p>Hello"}, "source": {"text/plain; charset=utf-8", "Subject: <script>\r\n\r\nHello"}, "attachments/1": {"application/octet-stream", "<script>"},
	} {
		rec := ask(t, a, "GET", "/v1/captured/dlv-1/"+path, "")
		if rec.Code != 200 || rec.Header().Get("Content-Type") != want[0] || rec.Body.String() != want[1] {
			t.Errorf("%s: %d %v %s", path, rec.Code, rec.Header(), rec.Body)
		}
		policy := rec.Header().Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; img-src data:; style-src 'unsafe-inline'; sandbox;") || strings.Contains(policy, "allow-") {
			t.Errorf("%s has the policy %s", path, policy)
		}
		for name, value := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"} {
			if got := rec.Header().Get(name); got != value {
				t.Errorf("%s has %s: %q", path, name, got)
			}
		}
		kind, params, err := mime.ParseMediaType(rec.Header().Get("Content-Disposition"))
		if path == "attachments/1" && (err != nil || kind != "attachment" || params["filename"] != `Grüße "x";.html`) {
			t.Errorf("the attachment is %s", rec.Header().Get("Content-Disposition"))
		}
	}
}

func TestCapturedMessagesBelongToAService(t *testing.T) {
	captured := &oneCaptured{}
	a := newWorld().api(func(d *Dependencies) { d.Captured = captured })
	first := ask(t, a, "GET", "/v1/captured?subject=x", "", "Authorization", "Bearer "+newsSecret)
	if first.Code != 200 || !strings.Contains(first.Body.String(), `"searched_until":"2026-11-20T12:00:00Z"`) || !strings.Contains(first.Body.String(), `"subject":"x"`) {
		t.Errorf("%d %s", first.Code, first.Body)
	}
	_, rest, _ := strings.Cut(first.Body.String(), `"next":"`)
	cursor, _, _ := strings.Cut(rest, `"`)
	if rec := ask(t, a, "GET", "/v1/captured?subject=x&cursor="+cursor, "", "Authorization", "Bearer "+newsSecret); rec.Code != 200 || !strings.Contains(rec.Body.String(), `"captured":[]`) {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	problemIn(t, ask(t, a, "GET", "/v1/captured?subject=y&cursor="+cursor, "", "Authorization", "Bearer "+newsSecret), 422, fanfare.Invalid)
	for _, path := range []string{"dlv-1", "dlv-1/html", "dlv-1/source", "dlv-1/attachments/1"} {
		problemIn(t, ask(t, a, "GET", "/v1/captured/"+path, "", "X-Fanfare-Service", "other"), 404, fanfare.NotFound)
		problemIn(t, ask(t, a, "GET", "/v1/captured/"+path, "", "Authorization", ""), 401, fanfare.Unauthenticated)
	}
	for _, path := range []string{"dlv-2", "..%2f..%2fetc", "dlv-1/attachments/x", "dlv-1/attachments/2", "dlv-1/attachments/99999999999999999999", "dlv-1/parts/1"} {
		problemIn(t, ask(t, a, "GET", "/v1/captured/"+path, ""), 404, fanfare.NotFound)
	}
	problemIn(t, ask(t, a, "DELETE", "/v1/captured/dlv-1", "", "X-Fanfare-Service", "other"), 404, fanfare.NotFound)
	for _, path := range []string{"/dlv-1", ""} {
		if rec := ask(t, a, "DELETE", "/v1/captured"+path, "", "Authorization", "Bearer "+newsSecret); rec.Code != 204 {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
	}
	if got := strings.Join(captured.deleted, ", "); got != "dlv-1, all of news" {
		t.Errorf("deleted are %s", got)
	}
}
