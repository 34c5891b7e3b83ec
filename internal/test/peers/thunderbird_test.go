//go:build peers && thunderbird

package peers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// thunderbirdPrefs are the settings of a profile with one account, for which it must ask nothing.
const thunderbirdPrefs = `user_pref("mail.accountmanager.accounts", "account1,account2");
user_pref("mail.accountmanager.defaultaccount", "account1");
user_pref("mail.accountmanager.localfoldersserver", "server2");
user_pref("mail.account.account1.identities", "id1");
user_pref("mail.account.account1.server", "server1");
user_pref("mail.account.account2.server", "server2");
user_pref("mail.account.lastKey", 2);
user_pref("mail.server.server2.type", "none");
user_pref("mail.server.server2.hostname", "Local Folders");
user_pref("mail.server.server2.userName", "nobody");
user_pref("mail.identity.id1.fullName", "Ann");
user_pref("mail.identity.id1.useremail", "ann@example.org");
user_pref("mail.identity.id1.valid", true);
user_pref("mail.server.server1.type", "imap");
user_pref("mail.server.server1.hostname", "127.0.0.1");
user_pref("mail.server.server1.port", %s);
user_pref("mail.server.server1.userName", "ann@example.org");
user_pref("mail.server.server1.name", "ann@example.org");
user_pref("mail.server.server1.socketType", 0);
user_pref("mail.server.server1.authMethod", 3);
user_pref("mail.server.server1.login_at_startup", true);
user_pref("mail.server.server1.check_new_mail", true);
user_pref("mail.server.server1.offline_download", true);
user_pref("mail.server.server1.autosync_offline_stores", true);
user_pref("mail.server.default.check_all_folders_for_new", true);
user_pref("mail.provider.suppress_dialog_on_startup", true);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("mailnews.start_page.enabled", false);
user_pref("app.update.enabled", false);
`

// Thunderbird without a window downloads an account, and a message that arrives while it idles. Its protocol log has no response that it could not
// parse and no command that the server refused.
func TestThunderbirdReadsAMailbox(t *testing.T) {
	p := startPostOffice(t)
	host, port := p.listens("over IMAP")
	ann := p.account("ann")
	ann.create("Projects")
	ann.create("Projects/Entw&APw-rfe")
	ann.put("INBOX", mailAbout("first"))
	for i := range 20 {
		ann.put("Projects/Entw&APw-rfe", mailAbout(fmt.Sprint("draft ", i)), `\Seen`)
	}
	profile := p.folder("profile")
	p.write("profile/prefs.js", fmt.Sprintf(thunderbirdPrefs, port))
	store := exec.CommandContext(t.Context(), "/usr/bin/python3", "imap/thunderbird_login.py", profile, "imap://"+host, "ann@example.org", p.passwords["ann"])
	store.Env = append(os.Environ(), "LD_LIBRARY_PATH=/usr/lib/thunderbird")
	if out, err := store.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	protocol := filepath.Join(p.dir, "imap")
	command := exec.CommandContext(ctx, program(t, "thunderbird"), "--headless", "--no-remote", "--profile", profile)
	command.Env = append(os.Environ(), "HOME="+p.folder("home"), "MOZ_LOG=IMAP:4,sync", "MOZ_LOG_FILE="+protocol)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = command.Wait() // it was killed
	})
	logged := func() string {
		text, _ := os.ReadFile(protocol + ".moz_log") // not there at first
		return string(text)
	}
	stored := func(folder, subject string) func() bool {
		return func() bool {
			text, _ := os.ReadFile(filepath.Join(profile, "ImapMail", host, folder)) // not there at first
			return strings.Contains(string(text), "Subject: "+subject)
		}
	}
	p.eventually("Thunderbird has the first message", stored("INBOX", "first"))
	p.eventually("Thunderbird has the messages of a folder", stored("Projects.sbd/Entwürfe", "draft 19"))
	idles := regexp.MustCompile(`S-INBOX:SendData: \d+ IDLE`)
	p.eventually("Thunderbird idles in the inbox", func() bool { return idles.MatchString(logged()) })
	ann.put("INBOX", mailAbout("second"))
	p.eventually("Thunderbird has the message that arrived", stored("INBOX", "second"))
	for _, line := range strings.Split(logged(), "\n") {
		if strings.Contains(line, "Syntax Error") || refusal.MatchString(line) {
			t.Errorf("the protocol log has %s", line)
		}
	}
}

var refusal = regexp.MustCompile(`CreateNewLineFromSocket: (\d+|\*) (NO|BAD) `)
