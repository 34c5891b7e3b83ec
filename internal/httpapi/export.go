package httpapi

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/csvrows"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
)

// The limits of exports as CSV.
const (
	maxExports   = 4                // at the same time
	exportTime   = 10 * time.Minute // of one export
	exportRows   = 1000             // rows of one page
	exportResult = "Fanfare-Export" // trailer that says whether an export is complete
	exportFormat = "format"         // query parameter, for links
	listPrefix   = "list-"          // of the ids of operations that are lists
)

// A listShape describes the pages of a list.
type listShape struct {
	name    string // JSON name of the member with the rows
	rows    int    // field with the rows
	next    int    // field with the cursor of the next page; -1 for a list of one page
	columns *csvrows.Columns
}

// listOf returns the description of a page type: a struct whose first slice has the rows. A list has a member next, or an id that begins with list-.
func listOf(op *huma.Operation, page reflect.Type) (l listShape, ok bool) {
	if page.Kind() != reflect.Struct {
		return l, false
	}
	l.rows, l.next = -1, -1
	for i := range page.NumField() {
		f := page.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "next":
			l.next = i
		case l.rows < 0 && f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
			l.rows, l.name, l.columns = i, name, csvrows.ColumnsOf(f.Type.Elem())
		}
	}
	return l, op.Method == http.MethodGet && l.rows >= 0 && (l.next >= 0 || strings.HasPrefix(op.OperationID, listPrefix))
}

type (
	listPages[I, T any] = func(ctx context.Context, c caller, in *I) (T, error)
	listLines[I any]    = func(ctx context.Context, c caller, in *I) (func(context.Context, *responseWriter) error, error)
)

// readList adds a list. A client gets a page as JSON, or the whole list as CSV. If ndjson is not nil, it returns the function that writes the whole list in
// the format of an import.
func readList[I, T any](a *API, op huma.Operation, who access, l listShape, page listPages[I, T], ndjson listLines[I]) {
	a.describe(&op, who)
	op.Metadata[listKey] = l.name
	if op.Responses["200"] == nil {
		replies[T](a, &op, http.StatusOK, "A page, or the whole list as CSV", "application/json")
	}
	op.Responses["200"].Content[csvType] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	op.Parameters = append(op.Parameters, &huma.Param{Name: exportFormat, In: "query", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"json", "csv"}},
		Description: "csv: the whole list as CSV instead of a page, as with Accept: text/csv. Nested members have names such as a.b, and lists and objects are JSON. The trailer " + exportResult + " is complete, or says why the export was cut off, as its last line does then"})
	huma.Register(a.spec, op, func(ctx context.Context, in *I) (*huma.StreamResponse, error) {
		x := ctx.Value(exchangeKey{}).(*responseWriter)
		c := ctx.Value(callerKey{}).(caller)
		var write func(context.Context, *responseWriter) error
		var err error
		switch {
		case x.wantsCSV:
			write = func(_ context.Context, x *responseWriter) error {
				return exportList(x, &l, in, func() (T, error) { return page(ctx, c, in) })
			}
		case ndjson != nil && acceptsLines(x.request.Header.Get("Accept")):
			write, err = ndjson(ctx, c, in)
		default:
			var body T
			if body, err = page(ctx, c, in); err == nil {
				write = func(_ context.Context, x *responseWriter) error {
					return httpio.WriteJSON(x, http.StatusOK, "application/json", body)
				}
			}
		}
		if err != nil {
			return nil, a.shown(ctx, err)
		}
		return &huma.StreamResponse{Body: func(hc huma.Context) {
			r, w := humago.Unwrap(hc)
			x := w.(*responseWriter)
			if err := write(r.Context(), x); err != nil {
				a.fail(x, err)
			}
		}}, nil
	})
}

// listKey is the metadata key for the name of the rows of a list.
const listKey = "list"

// chooseFormat removes the parameter format from the query of a list, and reports whether the client wants CSV.
func chooseFormat(r *http.Request) (isCSV bool, err error) {
	query := r.URL.Query()
	if query.Has(exportFormat) {
		switch format := query.Get(exportFormat); format {
		case "csv":
			isCSV = true
		case "json":
		default:
			return false, &fanfare.Error{Code: fanfare.Invalid, Message: "query parameter format must be json or csv"}
		}
		query.Del(exportFormat)
		r.URL.RawQuery = query.Encode()
	} else {
		isCSV = acceptsCSV(r.Header.Get("Accept"))
	}
	if !isCSV {
		return false, nil
	}
	for _, name := range []string{"cursor", "limit", "from"} {
		if query.Has(name) {
			return false, &fanfare.Error{Code: fanfare.Invalid, Message: "a list as CSV is complete and does not support " + name, Hint: "omit " + name + ", or request application/json to get pages"}
		}
	}
	return true, nil
}

// acceptsCSV reports whether the client explicitly accepts CSV.
func acceptsCSV(accept string) bool {
	return slices.ContainsFunc(strings.Split(accept, ","), func(one string) bool {
		kind, _, err := mime.ParseMediaType(strings.TrimSpace(one))
		return err == nil && kind == csvType
	})
}

// exportList writes a whole list as CSV. page reads the page that in selects.
func exportList[I, T any](x *responseWriter, l *listShape, in *I, page func() (T, error)) error {
	a := x.api
	select {
	case a.exports <- struct{}{}:
		defer func() { <-a.exports }()
	default:
		return &fanfare.Error{Code: fanfare.Unavailable, Message: fmt.Sprintf("%d exports are being written", maxExports), Hint: "send the request again when one has ended"}
	}
	begun := a.now()
	input := reflect.ValueOf(in).Elem()
	if limit := input.FieldByName("Limit"); limit.IsValid() {
		limit.SetInt(exportRows)
	}
	var out *exportStream
	for {
		body, err := page()
		if err != nil {
			return err // before the first page, it has its own response
		}
		if out == nil {
			if out, err = newExportStream(x, l); err != nil {
				return err
			}
		}
		v := reflect.ValueOf(&body).Elem()
		for _, row := range v.Field(l.rows).Seq2() {
			if err := out.writeRow(row); err != nil {
				return err
			}
		}
		if !l.follow(v, input) {
			return out.finish("")
		}
		if reason := a.cutOff(begun); reason != "" {
			return out.finish(reason)
		}
		if err := out.flush(); err != nil {
			return err
		}
	}
}

// cutOff returns why an export ends before its list, or "".
func (a *API) cutOff(begun time.Time) string {
	select {
	case <-a.stopping:
		return "the server is stopping"
	default:
	}
	if a.now().Sub(begun) >= exportTime {
		return "it took longer than " + exportTime.String()
	}
	return ""
}

// follow sets the input of a list to the page after one, and reports whether there is one.
func (l *listShape) follow(page, input reflect.Value) bool {
	if l.next < 0 {
		return false
	}
	next := page.Field(l.next)
	if next.Kind() == reflect.Uint64 { // a list by number, which ends with an empty page
		input.FieldByName("From").Set(next.Convert(input.FieldByName("From").Type()))
		return page.Field(l.rows).Len() > 0
	}
	input.FieldByName("Cursor").SetString(next.String())
	return next.String() != ""
}

// An exportStream writes the rows of a list as CSV.
type exportStream struct {
	*csvStream
	columns *csvrows.Columns
}

func newExportStream(x *responseWriter, l *listShape) (*exportStream, error) {
	x.Header().Set("Trailer", exportResult)
	s, err := newCSVStream(x, l.name, l.columns.Names())
	return &exportStream{s, l.columns}, err
}

func (s *exportStream) writeRow(row reflect.Value) error {
	cells, err := s.columns.Row(row)
	if err != nil {
		return err
	}
	return s.write(cells)
}

// finish ends the list. With a reason, the last line says that rows are missing.
func (s *exportStream) finish(reason string) error {
	result := "complete"
	if reason != "" {
		result = "cut off: " + reason
		_ = s.csv.Write([]string{"# The export was cut off, and rows are missing: " + reason + ". Use filters, or read the list page by page."}) // into memory
	}
	if err := s.flush(); err != nil {
		return err
	}
	s.x.Header().Set(exportResult, result)
	return nil
}
