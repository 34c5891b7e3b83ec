package files

import (
	"crypto/hmac"
	"crypto/sha256"
	"mime"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/people/pages"
)

// Handler serves the pages.
func (f *Files) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathHead+"{key}", f.serve)
	mux.HandleFunc("POST "+pathHead+"{key}", f.serve)
	return mux
}

// serve shows the page of a file, and sends the file after its button was pressed. Programs that
// follow links to check them do not press it.
func (f *Files) serve(w http.ResponseWriter, r *http.Request) {
	key, ok := keyOf(r.PathValue("key"))
	if !ok {
		f.gone(w, r, "")
		return
	}
	stored, err := f.options.Store.LinkedFile(r.Context(), idOf(key))
	if err != nil {
		f.options.Logger.Warn("a linked file could not be read", "error", err)
		f.show(w, r, http.StatusServiceUnavailable, &pages.Page{Kind: pages.Notice, Title: pages.Say("later_title"), Notes: []pages.Text{pages.Say("many")}})
		return
	}
	now := f.options.Clock.Now()
	if stored == nil {
		f.gone(w, r, "")
		return
	}
	if stored.ExpiresAt <= now.Unix() {
		f.gone(w, r, stored.Service)
		return
	}
	d, content, err := open(key, stored.Content)
	if err != nil {
		f.options.Logger.Error("a linked file is damaged", "error", err)
		f.gone(w, r, stored.Service)
		return
	}
	site, contact := f.options.Site(stored.Service)
	page := &pages.Page{Kind: pages.Download, Site: site, Title: pages.Say("file_title"), Form: &pages.DownloadForm{AskAddress: d.Ask}}
	page.Notes = []pages.Text{pages.Say("file_from", site.Name), pages.Say("file_until", time.Unix(stored.ExpiresAt, 0).UTC().Format("2006-01-02"))}
	if !d.Ask {
		page.Notes = append(page.Notes, pages.Say("file_about", d.Name, size(len(content))))
	}
	if contact != "" {
		page.Notes = append(page.Notes, pages.Say("file_contact", contact))
	}
	if r.Method != http.MethodPost {
		f.show(w, r, http.StatusOK, page)
		return
	}
	address := httpio.ReadForm(w, r).Get("address")
	if d.Ask {
		if !f.limits.allow(stored.ID, f.options.Address(r), now) {
			page.Kind, page.Form, page.Title, page.Notes = pages.Notice, nil, pages.Say("many_title"), []pages.Text{pages.Say("many")}
			f.show(w, r, http.StatusTooManyRequests, page)
			return
		}
		if !hmac.Equal(d.Recipient, f.recipient(stored.Service, address)) {
			page.Fault = pages.Say("file_wrong")
			page.Form = &pages.DownloadForm{AskAddress: true, Address: address}
			f.show(w, r, http.StatusUnprocessableEntity, page)
			return
		}
		f.limits.forget(stored.ID)
	}
	send(w, &d, content)
}

// send sends a file. Browsers store it and never open it as a page.
func send(w http.ResponseWriter, d *details, content []byte) {
	h := w.Header()
	media := d.Type
	if strings.HasPrefix(media, "text/") {
		media += "; charset=utf-8"
	}
	h.Set("Content-Type", media)
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": d.Name}))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	setSafe(h)
	httpio.WriteAll(w, http.StatusOK, content)
}

// setSafe sets the fields that all answers have: the address is a secret of the recipient.
func setSafe(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Robots-Tag", "noindex, nofollow")
}

// gone shows that there is no file. Without a service, nothing is known of the link.
func (f *Files) gone(w http.ResponseWriter, r *http.Request, service string) {
	page := &pages.Page{Kind: pages.Notice, Title: pages.Say("file_gone_title"), Notes: []pages.Text{pages.Say("file_gone")}}
	status := http.StatusNotFound
	if service != "" {
		status = http.StatusGone
		var contact string
		if page.Site, contact = f.options.Site(service); contact != "" {
			page.Notes = append(page.Notes, pages.Say("file_gone_contact", contact))
		}
	}
	f.show(w, r, status, page)
}

func (f *Files) show(w http.ResponseWriter, r *http.Request, status int, page *pages.Page) {
	page.Locale = locale(r)
	body, policy, err := f.pages.Write(page)
	if err != nil {
		f.options.Logger.Error("a page could not be written", "error", err)
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	setSafe(h)
	httpio.WriteAll(w, status, body)
}

// locale returns the first language that the browser accepts, or "".
func locale(r *http.Request) string {
	first, _, _ := strings.Cut(r.Header.Get("Accept-Language"), ",")
	first, _, _ = strings.Cut(first, ";")
	if first = strings.TrimSpace(first); len(first) > 35 {
		return ""
	}
	return first
}

// size returns a number of bytes for people.
func size(bytes int) string {
	switch {
	case bytes >= 1e6:
		return strconv.FormatFloat(float64(bytes)/1e6, 'f', 1, 64) + " MB"
	case bytes >= 1e3:
		return strconv.Itoa(bytes/1e3) + " KB"
	}
	return strconv.Itoa(bytes) + " B"
}

// Limits of addresses that are tried for one file, and by one client for all files, in an hour.
const (
	triesPerFile   = 10
	triesPerClient = 30
	maxCounts      = 100_000
)

// attempts counts the addresses that were tried. When it is full, new ones are refused until
// counts end: to drop counts would lift the limits of those who filled it.
type attempts struct {
	mu     sync.Mutex
	counts map[[16]byte]count
}

type count struct {
	tries int
	until time.Time
}

// allow counts an attempt and reports whether it is allowed.
func (a *attempts) allow(id []byte, client netip.Addr, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.counts) > maxCounts-2 {
		for key, c := range a.counts {
			if !now.Before(c.until) {
				delete(a.counts, key)
			}
		}
		if len(a.counts) > maxCounts-2 {
			return false
		}
	}
	byClient := a.count(countKey("client", client.String()), triesPerClient, now)
	return a.count(countKey("file", string(id)), triesPerFile, now) && byClient
}

func (a *attempts) count(key [16]byte, most int, now time.Time) bool {
	c := a.counts[key]
	if !now.Before(c.until) {
		c = count{until: now.Add(time.Hour)}
	}
	c.tries++
	a.counts[key] = c
	return c.tries <= most
}

// forget ends the count of a file whose address was right.
func (a *attempts) forget(id []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.counts, countKey("file", string(id)))
}

func countKey(kind, of string) (key [16]byte) {
	sum := sha256.Sum256([]byte(kind + "\x00" + of))
	copy(key[:], sum[:])
	return key
}
