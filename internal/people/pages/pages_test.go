package pages

import (
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/people/pages/words"
)

// all returns one page of each kind with all optional parts.
func all(site *Site) map[Kind]*Page {
	return map[Kind]*Page{
		Notice: {Title: Say("left_title"), Notes: []Text{Say("left", "<Roads>")}, Form: &Button{Action: "../r/x", Label: Say("undo"), Link: "../p/x", Other: Say("close")}},
		Unsubscribe: {Title: Say("leave_title"), Fault: Say("leave_none"), Form: &UnsubscribeForm{Reasons: []string{"", "often"},
			Choices: []Choice{{ID: "sub-1", Title: "<Roads>", Detail: "place: <b>", Checked: true}, {ID: "sub-2", Title: "Storms", Paused: true}}}},
		SignUp: {Title: Say("signup_title", "<Roads>"), Form: &SignUpForm{Token: "t", Bits: 15, To: "<a@b>", Wrong: "to", Channels: []Channel{{"email", "", "mail"}, {"slow", "Slow <mail>", "mail"}}, Locales: []string{"en", "cy"}, Locale: "cy", AskZone: true, Cadences: []string{"immediate", "daily 08:00"},
			Terms: "https://city.example/terms", TermsLink: true,
			Rules: []RuleChoice{{Name: "near", Title: "Near <me>", Checked: true, Params: []Param{{ID: "p-near-km", Title: "Km", Of: "Near", Kind: "number"}, {ID: "p-near-all", Title: "All", Kind: "boolean", Value: "true"}}},
				{Name: "far", Title: "Far", Params: []Param{{ID: "p-far-places", Title: "Places", Kind: "strings"}}}}}},
		Confirm: {Title: Say("confirm_title", "<Roads>"), Form: &ConfirmForm{Facts: []Fact{{"topic", "<Roads>"}}, Label: Say("confirm_button")}},
		MailPrograms: {Title: Say("programs_title"), Done: Say("programs_made"), Form: &MailProgramsForm{User: "ada@example.org", Password: "abcde-fghij", Last: "2",
			Incoming: []MailServer{{"mail.example.org", "993", "SSL/TLS"}}, Outgoing: []MailServer{{"mail.example.org", "587", "STARTTLS"}},
			Passwords: []AppPassword{{ID: "1", Name: "<Roads>", Created: "2026-11-01", Used: "2026-11-02"}, {ID: "2", Created: "2026-11-03"}}}},
		Preferences: {Title: Say("preferences_title"), Done: Say("saved"), Form: &PreferencesForm{MailPrograms: true, Locales: []string{"en", "de"}, Locale: "de", TimeZone: "Europe/Berlin",
			List: []Preference{{Choice: Choice{ID: "sub-1", Title: "<Roads>", Detail: "km: 5", Paused: true}, Cadence: "weekly monday 08:00", Cadences: []string{"immediate", "weekly monday 08:00"}, Channel: "email", Channels: []Channel{{"email", "", "mail"}, {"slow", "Slow <mail>", "mail"}}}}}},
	}
}

var plainSite = Site{Name: "City <of> X", Color: "#005ea5", Logo: "data:image/png;base64,AAAA", Links: []Link{{"Imprint", "https://city.example/imprint"}}}

func TestPageLoadsNothingFromOthers(t *testing.T) {
	w := NewWriter()
	for kind, p := range all(&plainSite) {
		p.Kind, p.Site = kind, &plainSite
		body, policy, err := w.Write(p)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		text := string(body)
		if strings.Contains(text, "<Roads>") || strings.Contains(text, "<of>") || strings.Contains(text, "ZgotmplZ") || strings.Contains(text, "no value") {
			t.Errorf("%s: %s", kind, text)
		}
		if regexp.MustCompile(`<(link|iframe|object|embed|script src|base)|\son[a-z]+=|\sstyle=|javascript:|url\(`).MatchString(text) {
			t.Errorf("%s has something of elsewhere, or that the policy stops: %s", kind, text)
		}
		style := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindStringSubmatch(text)[1]
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "style-src "+hashOf(style)) || strings.Contains(policy, "unsafe") ||
			!strings.Contains(policy, "img-src data:") || strings.Contains(policy, "script-src") != strings.Contains(text, "<script") {
			t.Errorf("%s: %s", kind, policy)
		}
	}
	if _, policy, err := w.Write(&Page{Kind: Notice}); err != nil || strings.Contains(policy, "img-src") {
		t.Errorf("without a logo: %s, %v", policy, err)
	}
}

func TestTextsAreInTheReadersLanguageOrEnglish(t *testing.T) {
	texts := Texts{"de": {"leave_title": "Abmelden?"}, "de-at": {"leave_button": "Pfiat di"}, "ar": {"leave_title": "إلغاء"}, "en": {"leave_all": "Everything"}}
	for _, c := range []struct{ locale, lang, title, button, all string }{
		{"", "en", "Unsubscribe?", "Unsubscribe", "Everything"},
		{"de", "de", "Abmelden?", "Unsubscribe", "Unsubscribe from everything"},
		{"de-AT", "de-at", "Abmelden?", "Pfiat di", "Unsubscribe from everything"},
		{"de-CH-1901", "de", "Abmelden?", "Unsubscribe", "Unsubscribe from everything"},
		{"fr", "en", "Unsubscribe?", "Unsubscribe", "Everything"},
	} {
		lang, say := texts.For(c.locale)
		if lang != c.lang || say(Say("leave_title")) != c.title || say(Say("leave_button")) != c.button || say(Say("leave_all")) != c.all {
			t.Errorf("%s: %s, %s, %s, %s", c.locale, lang, say(Say("leave_title")), say(Say("leave_button")), say(Say("leave_all")))
		}
	}
	body, _, err := NewWriter().Write(&Page{Kind: Notice, Site: &Site{Texts: texts}, Locale: "ar-EG", Title: Say("leave_title")})
	if err != nil || !strings.Contains(string(body), `<html lang="ar" dir="rtl">`) {
		t.Errorf("%s, %v", body, err)
	}
}

func TestTextOnAnyColorHasContrast(t *testing.T) {
	for r := 0; r < 256; r += 15 {
		for g := 0; g < 256; g += 15 {
			for b := 0; b < 256; b += 15 {
				color := "#" + hex(r) + hex(g) + hex(b)
				l, err := luminance(color)
				if err != nil {
					t.Fatal(err)
				}
				on := 0.0
				if strings.Contains(brandStyle(color), "--on-brand:#ffffff") {
					on = 1
				}
				if got := contrast(l, on); got < minContrast {
					t.Fatalf("%s: contrast %.2f", color, got)
				}
			}
		}
	}
	for _, wrong := range []string{"", "red", "#fff", "#12345g", "#1234567", "#12 456", "#+12345"} {
		if _, err := luminance(wrong); err == nil {
			t.Errorf("%q is taken for a color", wrong)
		}
	}
	if white, _ := luminance("#ffffff"); math.Abs(contrast(white, 0)-21) > 0.001 {
		t.Errorf("white on black is %v", contrast(white, 0))
	}
}

func hex(n int) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[n>>4], digits[n&15]})
}

func TestDefaultColorsHaveContrast(t *testing.T) {
	for i, scheme := range strings.SplitAfterN(style, "prefers-color-scheme:dark", 2) {
		color := func(name string) float64 {
			l, err := luminance(regexp.MustCompile(name + `:(#[0-9a-f]{6})`).FindStringSubmatch(scheme)[1])
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		ground := color("--ground")
		for name, least := range map[string]float64{"--ink": 7, "--quiet": minContrast, "--fault": minContrast, "--line": 3} {
			if got := contrast(ground, color(name)); got < least {
				t.Errorf("scheme %d: %s has contrast %.2f", i, name, got)
			}
		}
	}
}

// Every text that the code uses exists, and the code uses every text.
func TestTextsAreAllUsed(t *testing.T) {
	var sources strings.Builder
	for _, dir := range []string{".", "../../httpapi", "../../httpapi/recipientpages", "../../compat/notify/files", "../selfservice"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if name := e.Name(); (strings.HasSuffix(name, ".go") || strings.HasSuffix(name, ".html")) && !strings.HasSuffix(name, "_test.go") {
				b, err := os.ReadFile(dir + "/" + name)
				if err != nil {
					t.Fatal(err)
				}
				sources.Write(b)
			}
		}
	}
	for _, name := range words.Names() {
		kind, _, _ := strings.Cut(name, "_")
		if !strings.Contains(sources.String(), `"`+name+`"`) && !slices.Contains([]string{"reason", "day", "mail"}, kind) {
			t.Errorf("the text %s is not used", name)
		}
	}
	for _, said := range regexp.MustCompile(`(?:pages\.Say\(|\.Say )"([a-z_]+)"`).FindAllStringSubmatch(sources.String(), -1) {
		if !slices.Contains(words.Names(), said[1]) {
			t.Errorf("there is no text %s", said[1])
		}
	}
}
