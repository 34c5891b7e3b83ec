package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/state"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// keyRoutes serves keys: all keys to operators, and the keys of a service to its
// admins.
func (a *API) keyRoutes() {
	op := func(id, method, path, summary string, parameters ...*huma.Param) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: path, Tags: []string{"keys"}, Summary: summary, Parameters: parameters}
	}
	id := param("id", "id of the key, such as key-1")

	create := op("create-key", http.MethodPost, "/v1/keys", "Create a key", service())
	create.Description = "The secret is shown only once; the server stores only a hash of it. The secret of a key for clients of GOV.UK Notify (notify) is stored sealed, because it verifies the signatures of requests."
	create.RequestBody = body[wire.KeyRequest](a, "The settings of the key", "application/json")
	replies[wire.NewKey](a, &create, http.StatusCreated, "The key", "application/json")
	a.handle(create, mayConfigure, a.createKey)

	read(a, op("list-keys", http.MethodGet, "/v1/keys", "List the keys in the order of their creation"), mayConfigure,
		func(_ context.Context, c caller, in *Page) (wire.KeyPage, error) {
			keys, next, err := pageOf(listingOf("keys", c.service), in, a.deps.Keyring.Keys(c.service), func(k *state.Key) string { return padded(k.ID) })
			page := wire.KeyPage{Keys: make([]wire.Key, len(keys)), Next: next}
			for i, k := range keys {
				page.Keys[i] = keyOf(k)
			}
			return page, err
		})
	type One struct {
		Named
		ID string `path:"id" doc:"id of the key, such as key-1"`
	}
	read(a, op("get-key", http.MethodGet, "/v1/keys/{id}", "Get a key, without its secret"), mayConfigure,
		func(_ context.Context, c caller, in *One) (wire.Key, error) {
			k, err := a.deps.Keyring.Key(c.service, in.ID)
			return keyOf(k), err
		})

	change := op("change-key", http.MethodPatch, "/v1/keys/{id}", "Change the name, owner, scopes or expiry of a key, or disable it", id, service())
	change.RequestBody = body[wire.KeyPatch](a, "The members to change", httpio.MergePatch, "application/json")
	replies[wire.Key](a, &change, http.StatusOK, "The key as it is now", "application/json")
	a.handle(change, mayConfigure, a.changeKey)

	rotate := op("rotate-key", http.MethodPost, "/v1/keys/{id}/rotate", "Generate a new secret for a key", id, service())
	rotate.Description = "The new secret is valid immediately and is shown only once; the old one remains valid for grace seconds."
	rotate.RequestBody = body[wire.Rotation](a, "How long the old secret remains valid", "application/json")
	rotate.RequestBody.Required = false
	replies[wire.NewKey](a, &rotate, http.StatusOK, "The key with its new secret", "application/json")
	a.handle(rotate, mayConfigure, a.rotateKey)

	reseal := op("reseal-keys", http.MethodPost, "/v1/reseal", "Replace the key with which the secrets of keys are sealed")
	reseal.Description = "Only the secrets of keys for clients of GOV.UK Notify are sealed. The clients notice nothing. Backups that were made before contain the previous key and what it sealed."
	replies[wire.Resealed](a, &reseal, http.StatusOK, "The number of secrets", "application/json")
	a.handle(reseal, operator, func(x *responseWriter, r *http.Request, _ caller) error {
		n, err := a.deps.Keyring.ResealKeys(r.Context())
		if err != nil {
			return err
		}
		return httpio.WriteJSON(x, http.StatusOK, "application/json", wire.Resealed{Keys: n})
	})

	act(a, op("delete-key", http.MethodDelete, "/v1/keys/{id}", "Delete a key permanently"), mayConfigure,
		func(ctx context.Context, c caller, in *One) error {
			return a.deps.Keyring.DeleteKey(ctx, c.service, in.ID)
		})
}

// padded pads ids so that they sort by number.
func padded(id string) string {
	const width = 16
	return "                "[:max(0, width-len(id))] + id
}

func keyOf(k state.Key) wire.Key {
	return wire.Key{ID: k.ID, Name: k.Name, Service: k.Service, Notify: k.Notify, Scopes: k.Scopes.Names(), Owner: k.Owner, CreatedAt: k.CreatedAt,
		ExpiresAt: k.ExpiresAt, Disabled: k.Disabled, LastUsed: k.LastUsed, OldValidUntil: k.OldUntil, OldLastUsed: k.OldUsed}
}

func (a *API) createKey(x *responseWriter, r *http.Request, c caller) error {
	var in wire.KeyRequest
	if err := httpio.ReadJSON(x, r, &in); err != nil {
		return err
	}
	if in.Service == "" && !in.AllServices {
		in.Service = c.service
	}
	switch {
	case in.Service != "" && in.AllServices:
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/all_services", Message: "set either service or all_services, not both"}
	case in.Service == "" && !in.AllServices:
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/service", Message: "service is missing", Hint: "set service to the service of the key, or set all_services"}
	case in.AllServices && c.principal.Service != "":
		return c.must(operator)
	case !c.principal.May(in.Service):
		return &fanfare.Error{Code: fanfare.Forbidden, Pointer: "/service", Message: "this key is not for service " + in.Service, Hint: "use a key for all services to create this key"}
	}
	if in.Scopes != nil && len(in.Scopes) == 0 { // an absent list means admin, an empty list does not
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/scopes", Message: "the list of scopes is empty", Hint: "add a scope, or omit the member scopes to create an admin key"}
	}
	scopes, err := catalog.ParseScopes(in.Scopes)
	if err == nil {
		err = a.checkExpiry(in.ExpiresAt)
	}
	if err != nil {
		return err
	}
	settings := state.KeySettings{Name: in.Name, Owner: in.Owner, Scopes: scopes, ExpiresAt: in.ExpiresAt}
	var key state.Key
	var secret string
	if in.Notify != "" {
		if in.Scopes != nil || in.AllServices {
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/notify", Message: "a key for clients of GOV.UK Notify has no scopes and belongs to one service", Hint: "omit scopes and all_services"}
		}
		key, secret, err = a.deps.Keyring.CreateNotifyKey(r.Context(), in.Service, settings, in.Notify, in.Secret)
	} else if in.Secret != "" {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/secret", Message: "only a key for clients of GOV.UK Notify can have a given secret", Hint: "omit secret, or set notify"}
	} else {
		key, secret, err = a.deps.Keyring.CreateKey(r.Context(), in.Service, settings)
	}
	if err != nil {
		return err
	}
	x.Header().Set("Location", "/v1/keys/"+key.ID)
	return writeSecret(x, http.StatusCreated, key, secret)
}

func (a *API) checkExpiry(at time.Time) error {
	if at.IsZero() || at.After(a.now()) {
		return nil
	}
	return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/expires_at", Message: "must be in the future"}
}

// writeSecret responds with a key and its secret, which caches must not store.
func writeSecret(x *responseWriter, status int, key state.Key, secret string) error {
	x.Header().Set("Cache-Control", "no-store")
	return httpio.WriteJSON(x, status, "application/json", wire.NewKey{Key: keyOf(key), Secret: secret})
}

func (a *API) changeKey(x *responseWriter, r *http.Request, c caller) error {
	p, err := readPatch[wire.KeyPatch](x, r)
	if err != nil {
		return err
	}
	key, err := a.deps.Keyring.ChangeKey(r.Context(), c.service, r.PathValue("id"), func(k *state.KeySettings) error {
		scopes := k.Scopes.Names()
		if _, changed := p["owner"]; changed && c.principal.KeyID == r.PathValue("id") {
			return &fanfare.Error{Code: fanfare.Forbidden, Pointer: "/owner", Message: "a key cannot change its own owner", Hint: "use another key with the scope admin"}
		}
		err := errors.Join(p.into("name", &k.Name), p.into("owner", &k.Owner), p.into("scopes", &scopes), p.into("expires_at", &k.ExpiresAt), p.into("disabled", &k.Disabled))
		if err != nil {
			return err
		}
		if _, changed := p["expires_at"]; changed {
			if err := a.checkExpiry(k.ExpiresAt); err != nil {
				return err
			}
		}
		k.Scopes, err = catalog.ParseScopes(scopes)
		return err
	})
	if err != nil {
		return err
	}
	return httpio.WriteJSON(x, http.StatusOK, "application/json", keyOf(key))
}

func (a *API) rotateKey(x *responseWriter, r *http.Request, c caller) error {
	var in wire.Rotation
	if r.ContentLength != 0 {
		if err := httpio.ReadJSON(x, r, &in); err != nil {
			return err
		}
	}
	if most := int(state.MaxGrace / time.Second); in.Grace < 0 || in.Grace > most {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/grace", Message: "must be a number of seconds from 0 to " + strconv.Itoa(most) + " (seven days)"}
	}
	key, secret, err := a.deps.Keyring.RotateKey(r.Context(), c.service, r.PathValue("id"), time.Duration(in.Grace)*time.Second)
	if err != nil {
		return err
	}
	return writeSecret(x, http.StatusOK, key, secret)
}
