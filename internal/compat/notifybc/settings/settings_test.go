package settings_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/compat/notifybc/settings"
)

const least = "service: alerts\nlisten: 127.0.0.1:3000\n"

func TestSettingsHaveTheNamesOfNotifyBC(t *testing.T) {
	s, err := settings.Parse([]byte(least + `
restApiRoot: /v2/api/
httpHost: https://notify.example.org/
adminIps: [10.0.0.0/8]
channels: {email: mail, sms: texts}
subscription:
  detectDuplicatedSubscription: true
  confirmationRequest:
    email: {confirmationCodeRegex: '\d{6}', sendRequest: true, from: "a@example.org", subject: s, textBody: t}
  anonymousUnsubscription: {code: {required: false}}
notification: {logSkippedBroadcastPushDispatches: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	if s.Root != "/v2/api" || s.HTTPHost != "https://notify.example.org" || s.Channels.Email != "mail" || s.Channels.SMS != "texts" || !s.Notification.LogSkipped || !s.Subscription.DetectDuplicatedSubscription {
		t.Errorf("the settings are %+v", s)
	}
	sub := &s.Subscription
	if sub.Unsubscription.Code.Required || sub.Unsubscription.Code.Regex != `\d{5}` || sub.ConfirmationRequest.Of("email").ConfirmationCodeRegex != `\d{6}` || sub.ConfirmationRequest.Of("fax") != nil {
		t.Errorf("the settings of subscriptions are %+v", sub)
	}
}

func TestWrongSettingsAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"listen: 127.0.0.1:3000":        "/service",
		"service: a":                    "/listen",
		least + "color: red":            "color",
		least + "adminIps: [x]":         "/adminIps",
		least + "restApiRoot: api":      "/restApiRoot",
		least + "httpHost: ftp://x":     "/httpHost",
		least + "channels: {email: ''}": "/channels",
		least + "email: {from: x}":      "/email/from",
		least + "subscription: {anonymousUnsubscription: {code: {regex: '('}}}":                       "/subscription/anonymousUnsubscription/code/regex",
		least + "subscription: {confirmationRequest: {email: {confirmationCodeRegex: 'a{99}b{99}'}}}": "/subscription/confirmationRequest/email/confirmationCodeRegex",
		least + "subscription: {confirmationAcknowledgements: {redirectUrl: 'javascript:x'}}":         "/subscription/confirmationAcknowledgements/redirectUrl",
		least + "subscription: {confirmationRequest: {sms: {from: \"a\\r\\nBcc: b\"}}}":               "/subscription/confirmationRequest/sms/from",
		"x: [":       "",
		"\xff":       "UTF-8",
		"- a\n- b\n": "",
	} {
		_, err := settings.Parse([]byte(text))
		wrong, ok := errors.AsType[*fanfare.Error](err)
		if !ok {
			t.Errorf("%.80q: %v", text, err)
			continue
		}
		if !strings.Contains(wrong.Pointer+wrong.Message, want) {
			t.Errorf("%.80q is refused at %q: %s, want %q", text, wrong.Pointer, wrong.Message, want)
		}
	}
}

func TestOverridesDoNotChangeTheSettingsBelow(t *testing.T) {
	base := settings.Defaults().Subscription
	own, err := base.Merge(json.RawMessage(`{"confirmationRequest":{"email":{"subject":"own"}},"anonymousUndoUnsubscription":{"successMessage":"ok"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if own.ConfirmationRequest.Email.Subject != "own" || own.ConfirmationRequest.Email.TextBody != base.ConfirmationRequest.Email.TextBody || own.UndoUnsubscription.SuccessMessage != "ok" {
		t.Errorf("the merged settings are %+v", own)
	}
	if base.ConfirmationRequest.Email.Subject == "own" {
		t.Error("the settings below have changed")
	}
	for _, wrong := range []string{`[]`, `{"confirmationRequest":1}`, `{"anonymousUnsubscription":{"code":{"regex":"("}}}`} {
		if _, err := base.Merge(json.RawMessage(wrong)); err == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
}
