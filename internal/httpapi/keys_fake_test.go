package httpapi

import (
	"context"
	"time"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/state"
	"fanfare.dev/fanfare/internal/httpapi/problem"
)

// keyBox is a Keyring that knows one key of service news.
type keyBox struct{ key state.Key }

func newKeyBox() *keyBox {
	return &keyBox{key: state.Key{ID: "key-2", Service: "news",
		KeySettings: state.KeySettings{Name: "website", Scopes: catalog.ScopeSubscribe, ExpiresAt: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}}}
}

func (k *keyBox) Keys(string) []state.Key { return []state.Key{k.key} }

func (k *keyBox) Key(service, id string) (state.Key, error) {
	if id != k.key.ID || service != "" && service != k.key.Service {
		return state.Key{}, problem.NotFound("key", id)
	}
	return k.key, nil
}

func (k *keyBox) CreateKey(_ context.Context, service string, s state.KeySettings) (state.Key, string, error) {
	return state.Key{ID: "key-9", Service: service, KeySettings: s}, "secret-of-" + service + "-" + s.Name, nil
}

func (k *keyBox) ChangeKey(_ context.Context, service, id string, change func(*state.KeySettings) error) (state.Key, error) {
	key, err := k.Key(service, id)
	if err == nil {
		err = change(&key.KeySettings)
	}
	return key, err
}

func (k *keyBox) RotateKey(_ context.Context, service, id string, grace time.Duration) (state.Key, string, error) {
	key, err := k.Key(service, id)
	key.OldUntil = time.Unix(0, 0).Add(grace)
	return key, "rotated", err
}

func (k *keyBox) DeleteKey(_ context.Context, service, id string) error {
	_, err := k.Key(service, id)
	return err
}

func (k *keyBox) CreateNotifyKey(_ context.Context, service string, s state.KeySettings, kind, _ string) (state.Key, string, error) {
	return state.Key{ID: "key-10", Service: service, KeySettings: s, Notify: kind}, "notify-secret", nil
}

func (k *keyBox) ResealKeys(context.Context) (int, error) { return 1, nil }
