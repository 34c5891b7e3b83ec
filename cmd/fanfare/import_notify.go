package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/cli/terminal"
)

func (c *cli) importNotifyTemplates() *cobra.Command {
	var from notifyService
	var keyFile string
	command := &cobra.Command{
		Use: "notify-templates --url URL --key-file FILE", Short: "Import templates from GOV.UK Notify",
		Long: `Import the templates of a service of GOV.UK Notify for emails and text messages, with
their ids, names and version numbers. Clients of Notify that use these ids then work
unchanged. Templates of other types are skipped.

The file contains an API key of the service, of any type. Templates that were imported
before are updated; importing them again changes nothing. An invalid template does not
stop the import.

Exit code 2: some templates were rejected.`,
		Example: "  fanfare import notify-templates --service passports --url https://api.notifications.service.gov.uk --key-file notify-key.txt",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			text, err := os.ReadFile(keyFile)
			if err != nil {
				return err
			}
			if err := from.setKey(strings.TrimSpace(string(text))); err != nil {
				return err
			}
			into := c.setting(c.service, "FANFARE_SERVICE", "")
			if into == "" {
				return &fanfare.Error{Code: fanfare.Invalid, Message: "the service is missing", Hint: "pass --service, or set FANFARE_SERVICE"}
			}
			api, err := c.connect()
			if err != nil {
				return err
			}
			return c.importFromNotify(command.Context(), api, &from, into)
		},
	}
	flags := command.Flags()
	flags.StringVar(&from.url, "url", "https://api.notifications.service.gov.uk", "address of the API of Notify")
	flags.StringVar(&keyFile, "key-file", "", "file that contains an API key of the service (required)")
	_ = command.MarkFlagRequired("key-file") // the flag exists
	return command
}

// A notifyTemplate is a template as Notify shows it.
type notifyTemplate struct {
	ID      string
	Name    string
	Type    string
	Version int
	Subject string
	Body    string
}

// importFromNotify imports all templates into a service.
func (c *cli) importFromNotify(ctx context.Context, api *client.Client, from *notifyService, service string) error {
	templates, err := from.templates(ctx)
	if err != nil {
		return err
	}
	names := newTemplateNames()
	for t, err := range api.Templates().All(ctx) {
		if err != nil {
			return err
		}
		names.add(t.ID, t.Name)
	}
	done := map[string]int{}
	var rejected []string
	bar := c.newBar("importing", "templates", int64(len(templates)))
	for i := range templates {
		t := &templates[i]
		if t.Type != "email" && t.Type != "sms" {
			done["skipped"]++
			continue
		}
		name := names.of(t)
		document, err := t.document(service, name)
		if err != nil {
			bar.End()
			return err
		}
		diff, err := api.Apply(ctx, document, false)
		wrong, ours := errors.AsType[*fanfare.Error](err)
		switch {
		case err == nil && len(diff.Changes) == 0:
			done["unchanged"]++
		case err == nil:
			done[diff.Changes[0].Action]++
		case ours && (wrong.Code == fanfare.Invalid || wrong.Code == fanfare.Conflict || wrong.Code == fanfare.TooLarge):
			rejected = append(rejected, fmt.Sprintf("%s (%s): %v", terminal.Short(t.Name), t.ID, err))
		default:
			bar.End()
			return err
		}
		bar.Set(int64(i+1), int64(i+1))
	}
	bar.End()
	for _, line := range rejected {
		fmt.Fprintln(c.err, line)
	}
	fmt.Fprintf(c.out, "%d created, %d updated, %d unchanged, %d rejected, %d skipped because of their types\n",
		done["create"], done["update"], done["unchanged"], len(rejected), done["skipped"])
	if len(rejected) > 0 {
		return &someFailed{fmt.Sprintf("%d templates were rejected", len(rejected))}
	}
	return nil
}

// document returns the document with the template.
func (t *notifyTemplate) document(service, name string) ([]byte, error) {
	spec := map[string]any{"id": t.ID, "title": t.Name, "type": t.Type, "syntax": "notify", "min_version": t.Version}
	if t.Type == "sms" {
		spec["text"] = t.Body
	} else {
		spec["subject"], spec["markdown"] = t.Subject, t.Body
	}
	return json.Marshal(map[string]any{"service": service, "templates": map[string]any{name: spec}})
}

// templateNames are the names of the templates of a service by their ids.
type templateNames struct {
	byID map[string]string
	used map[string]bool
}

func newTemplateNames() *templateNames {
	return &templateNames{byID: map[string]string{}, used: map[string]bool{}}
}

func (n *templateNames) add(id, name string) {
	if id != "" {
		n.byID[id] = name
	}
	n.used[name] = true
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// maxNameStem is the length of the part of a name that comes from the title.
const maxNameStem = 40

// of returns the name of a template: the one that it has, or a new one.
func (n *templateNames) of(t *notifyTemplate) string {
	if name := n.byID[t.ID]; name != "" {
		return name
	}
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(t.Name), "-"), "-")
	name = strings.Trim(name[:min(len(name), maxNameStem)], "-")
	if name == "" || name[0] < 'a' {
		name = strings.TrimSuffix("template-"+name, "-")
	}
	if n.used[name] {
		name += "-" + t.ID[:min(len(t.ID), 8)]
	}
	n.add(t.ID, name)
	return name
}

// A notifyService is a service of Notify, read with one of its keys.
type notifyService struct {
	url, id, secret string
}

var notifyKey = regexp.MustCompile(`^(?:.+-)?([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})-([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$`)

// setKey reads the text of a key.
func (s *notifyService) setKey(text string) error {
	found := notifyKey.FindStringSubmatch(text)
	if found == nil {
		return &fanfare.Error{Code: fanfare.Invalid, Message: "the file does not contain an API key of Notify", Hint: "it must contain one line: the name of the key, the id of the service and the secret, joined by hyphens"}
	}
	s.id, s.secret = found[1], found[2]
	return nil
}

// maxNotifyBytes limits what is read of a response.
const maxNotifyBytes = 64 << 20

// templates reads all templates.
func (s *notifyService) templates(ctx context.Context) ([]notifyTemplate, error) {
	base, err := url.Parse(s.url)
	if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "the address of the API is not an http or https URL: " + s.url}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.ResolveReference(&url.URL{Path: "/v2/templates"}).String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token(time.Now()))
	request.Header.Set("User-Agent", "fanfare")
	// A redirect would send the token to another server.
	reader := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := reader.Do(request)
	if err != nil {
		return nil, &fanfare.Error{Code: fanfare.Unavailable, Message: "cannot reach Notify: " + err.Error(), Hint: "check --url and the network"}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxNotifyBytes))
	if err != nil {
		return nil, &fanfare.Error{Code: fanfare.Unavailable, Message: "cannot read the answer of Notify: " + err.Error()}
	}
	if response.StatusCode != http.StatusOK {
		return nil, notifyError(response.StatusCode, body)
	}
	var list struct{ Templates []notifyTemplate }
	if err := json.Unmarshal(body, &list); err != nil || list.Templates == nil {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "the server at " + base.Host + " does not answer like Notify", Hint: "check --url"}
	}
	return list.Templates, nil
}

// notifyError returns the error of a response.
func notifyError(status int, body []byte) error {
	var problem struct {
		Errors []struct{ Error, Message string }
	}
	err := &fanfare.Error{Code: fanfare.Unavailable, Message: fmt.Sprintf("Notify answered with status %d", status)}
	if json.Unmarshal(body, &problem) == nil && len(problem.Errors) > 0 {
		err.Message += ": " + terminal.Short(problem.Errors[0].Message)
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		err.Code, err.Hint = fanfare.Forbidden, "check the key, and the clock of this machine, which may differ by 30 seconds"
	}
	return err
}

// token returns a JSON Web Token (RFC 7519) for a request.
func (s *notifyService) token(now time.Time) string {
	encode := base64.RawURLEncoding.EncodeToString
	claims := fmt.Sprintf(`{"iss":%q,"iat":%d}`, s.id, now.Unix())
	signed := encode([]byte(`{"typ":"JWT","alg":"HS256"}`)) + "." + encode([]byte(claims))
	mac := hmac.New(sha256.New, []byte(s.secret))
	mac.Write([]byte(signed))
	return signed + "." + encode(mac.Sum(nil))
}
