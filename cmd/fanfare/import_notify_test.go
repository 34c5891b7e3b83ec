package main

import (
	"testing"
)

func TestImportedTemplatesGetNamesOfTheirTitles(t *testing.T) {
	names := newTemplateNames()
	names.add("", "plain")
	names.add("6d1f4c0e-0000-4000-8000-000000000009", "renamed-here")
	for i, test := range []struct{ id, title, want string }{
		{"6d1f4c0e-0000-4000-8000-000000000001", "Your passport: ready!", "your-passport-ready"},
		{"7d1f4c0e-0000-4000-8000-000000000002", "Your passport, ready", "your-passport-ready-7d1f4c0e"},
		{"6d1f4c0e-0000-4000-8000-000000000003", "Plain", "plain-6d1f4c0e"},
		{"6d1f4c0e-0000-4000-8000-000000000004", "2nd reminder", "template-2nd-reminder"},
		{"6d1f4c0e-0000-4000-8000-000000000005", "Ärger", "rger"},
		{"6d1f4c0e-0000-4000-8000-000000000006", "日本", "template"},
		{"6d1f4c0e-0000-4000-8000-000000000009", "Whatever", "renamed-here"},
		{"6d1f4c0e-0000-4000-8000-000000000001", "Another title", "your-passport-ready"},
	} {
		if got := names.of(&notifyTemplate{ID: test.id, Name: test.title}); got != test.want {
			t.Errorf("%d: %s, want %s", i, got, test.want)
		}
	}
}

func TestNotifyKeyIsReadFromItsText(t *testing.T) {
	const service, secret = "26785a09-ab16-4eb0-8407-a37497a57506", "3d844edf-8d35-48ac-975b-e847b4f122b0"
	for text, ok := range map[string]bool{
		"my-key-" + service + "-" + secret: true, service + "-" + secret: true,
		"my-key-" + secret: false, "": false, "my-key-" + service + "-" + secret + "x": false,
	} {
		var s notifyService
		err := s.setKey(text)
		if (err == nil) != ok || ok && (s.id != service || s.secret != secret) {
			t.Errorf("%q: %v %+v", text, err, s)
		}
	}
}
