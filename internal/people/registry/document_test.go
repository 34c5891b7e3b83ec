package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestADocumentAsJSONIsTheSameDocumentWithFilesInlined(t *testing.T) {
	ctx := context.Background()
	r, _ := openAt(t, storetest.Place(t))
	d, err := document.ParseDocument([]byte(quakes), writeFiles(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(ctx, d); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	again, err := document.ParseDocument(b, "")
	if err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	if diff, err := r.Apply(ctx, again); err != nil || len(diff.Changes) != 0 {
		t.Errorf("%s, %v\n%s", summary(diff), err, b)
	}
}

func TestFilesOutsideTheDocumentsFolderAreNotRead(t *testing.T) {
	dir := writeFiles(t)
	inner := filepath.Join(dir, "inner")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../schema.json", filepath.Join(dir, "schema.json"), "missing.json"} {
		_, err := document.ParseDocument([]byte("service: a\ntopics:\n  x:\n    schema_file: "+name), inner)
		e, ok := errors.AsType[*fanfare.Error](err)
		if !ok || e.Pointer != "/topics/x/schema_file" || e.Line != 4 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFormsThatEditorsLeaveAreNamedOrTaken(t *testing.T) {
	if _, err := document.ParseDocument([]byte("\xef\xbb\xbfservice: a\r\ntopics: {}\r\n"), ""); err != nil {
		t.Errorf("behind a byte order mark: %v", err)
	}
	for text, hint := range map[string]string{
		"service: a\ntopics:\n\tx: {}\n":                              "indent with spaces",
		"service: a\ntopics:\n  x:\n     title: y\n    template: z\n": "check the indentation",
	} {
		_, err := document.ParseDocument([]byte(text), "")
		e, ok := errors.AsType[*fanfare.Error](err)
		if !ok || e.Line < 3 || !strings.Contains(e.Hint, hint) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestARelocatedErrorSaysWhereTheTextStands(t *testing.T) {
	written := "service: a\n\ntopics:\n  t:\n    schema: {type: object, properties: {place: {type: string}}}\n    rules:\n      - name: r\n        when: |\n          has(event.place) &&\n          plcae == 'x'\n"
	doc, err := document.ParseDocument([]byte(written), "")
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	sent, err := document.ParseDocument(b, "")
	if err != nil {
		t.Fatal(err)
	}
	r, _ := openAt(t, storetest.Place(t))
	_, err = r.Apply(context.Background(), sent)
	if err == nil {
		t.Fatal("a wrong condition was taken")
	}
	got := doc.Relocated(err, sent)
	if want := `/topics/t/rules/0/when: line 2, column 1: unknown name "plcae", in the text at line 8`; !strings.HasPrefix(got.Error(), want) {
		t.Errorf("it says %v", got)
	}
}

func TestAPasswordIsReadWhereTheSettingsSay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("from the file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("RELAY_PASSWORD", "from the environment")
	r, _ := openAt(t, storetest.Place(t))
	cases := []struct{ setting, want string }{
		{"password_env: RELAY_PASSWORD", "from the environment"},
		{"password_file: " + file, "from the file"},
		{"password_env: NO_SUCH_VARIABLE", ""},
		{"password_file: " + file + ".gone", ""},
	}
	for _, c := range cases {
		apply(t, r, "service: a\nchannels:\n  e: {driver: smtp, relay: 'h:25', from: a@b.c, username: u, "+c.setting+"}")
		channel, _ := r.ChannelNamed("a", "e")
		if got, err := channel.Password(); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v", c.setting, got, err)
		}
	}
}

func TestUnitsAreWrittenAsTheyAreRead(t *testing.T) {
	for _, s := range []string{"30/s", "14/s", "1000/min", "5000/h", "unlimited"} {
		if r, err := catalog.ParseRate(s); err != nil || r.String() != s {
			t.Errorf("%s became %s, %v", s, r, err)
		}
	}
	for _, s := range []string{"", "30", "0/s", "-1/s", "30/d", "x/s"} {
		if _, err := catalog.ParseRate(s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
	for _, s := range []string{"30s", "2m", "10m", "1h", "1h30m", "1m30s"} {
		var d catalog.Duration
		if err := json.Unmarshal([]byte(`"`+s+`"`), &d); err != nil || d.String() != s {
			t.Errorf("%s became %s, %v", s, d, err)
		}
	}
}

// FuzzParseDocument checks that no document makes the parser panic, and that every error
// is one for users.
func FuzzParseDocument(f *testing.F) {
	f.Add([]byte(weather))
	f.Add([]byte("service: &a x\ntopics: *a\n<<: {a: b}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := document.ParseDocument(b, "")
		if err == nil && d == nil {
			t.Fatal("neither document nor error")
		}
		if err != nil && fanfare.CodeOf(err) == fanfare.Internal {
			t.Fatalf("%q: %v", b, err)
		}
	})
}
