package e2e

import (
	"reflect"
	"testing"

	"fanfare.dev/fanfare/client"
)

// methods says by which method of the Go client each operation is called.
var methods = map[string]string{
	"apply": "Apply", "list-audit": "Audit", "take-backup": "Backup", "get-restored": "Restored", "start-move": "StartMove", "get-move": "Move", "stop-move": "StopMove", "list-nodes": "Nodes", "get-status": "Status", "follow-status": "FollowStatus", "get-rates": "Rates",
	"list-captured": "Captured", "get-captured": "CapturedMessage", "show-captured-html": "CapturedHTML", "get-captured-source": "CapturedSource", "get-captured-attachment": "CapturedAttachment", "delete-captured": "DeleteCaptured", "clear-captured": "ClearCaptured",
	"list-broadcasts": "Broadcasts", "list-events": "Events", "get-event": "Event", "list-deliveries": "Deliveries", "get-delivery": "Delivery", "list-history": "History",
	"publish": "Publish", "publish-by-type": "PublishEvents", "pause": "Pause", "resume": "Resume", "cancel": "Cancel", "approve": "Approve", "set-rate": "SetRate",
	"list-sign-ins": "SignIns", "end-sign-in": "EndSignIn", "list-keys": "Keys", "create-key": "CreateKey", "delete-key": "DeleteKey", "get-key": "Key", "change-key": "ChangeKey", "rotate-key": "RotateKey", "reseal-keys": "ResealKeys",
	"list-mailboxes": "Mailboxes", "get-mailbox": "Mailbox", "put-mailbox": "CreateMailbox", "change-mailbox": "ChangeMailbox", "delete-mailbox": "RemoveMailbox", "list-mailbox-aliases": "MailboxAliases", "put-mailbox-alias": "AddMailboxAlias", "delete-mailbox-alias": "RemoveMailboxAlias", "get-mailbox-search-index": "MailboxSearchIndex", "reindex-mailbox": "ReindexMailbox", "reindex-all-mailboxes": "ReindexAllMailboxes", "export-mailbox": "ExportMailbox", "import-mailbox": "ImportMailbox",
	"recall-broadcast": "Recall", "put-expiry": "Expire",
	"get-mailbox-dns": "MailboxDNS", "create-app-password": "CreateAppPassword", "create-mailbox-token": "CreateMailboxToken", "list-app-passwords": "AppPasswords", "revoke-app-password": "RevokeAppPassword",
	"list-messages": "Messages", "send-message": "Send", "get-message": "Message", "list-destinations": "Destinations", "resume-destination": "ResumeDestination", "list-parked": "Parked", "drop-parked": "DropParked", "retry-parked": "RetryParked",
	"create-send": "CreateSend", "list-sends": "Sends", "get-send": "ListSend", "change-send": "ChangeSend", "delete-send": "DeleteSend", "put-recipients": "UploadRecipients", "list-recipients": "SendRows", "list-send-errors": "SendErrors", "preview-recipient": "PreviewRow", "show-recipient-html": "RowHTML",
	"submit-send": "SubmitSend", "approve-send": "ApproveSend", "pause-send": "PauseSend", "resume-send": "ResumeSend", "cancel-send": "CancelSend", "report-send": "SendReport",
	"list-settings": "Settings", "start-task": "StartTask", "list-tasks": "Tasks", "get-task": "Task", "cancel-task": "CancelTask",
	"list-subscribers": "Subscribers", "create-subscriber": "PutSubscriber", "put-subscriber": "PutSubscriber", "get-subscriber": "Subscriber", "patch-subscriber": "PatchSubscriber",
	"delete-subscriber": "DeleteSubscriber", "erase-subscriber": "EraseSubscriber", "export-subscriber": "ExportSubscriber", "merge-subscriber": "MergeSubscriber",
	"sign-up": "SignUp", "list-consents": "Consents",
	"get-suppression": "Suppression", "lift-suppression": "LiftSuppression", "suppress": "Suppress", "list-suppressions": "Suppressions", "import-suppressions": "ImportSuppressions",
	"list-subscriptions": "Subscriptions", "put-subscriptions": "ImportSubscriptions", "put-subscription": "PutSubscription", "get-subscription": "Subscription", "end-subscription": "EndSubscription",
	"pause-subscription": "PauseSubscription", "resume-subscription": "ResumeSubscription",
	"get-secret": "ReceiverSecret", "explain-event": "Explain", "explain-data": "ExplainData", "report-conditions": "ReportConditions", "match-event": "DryRun", "test-condition": "TestCondition", "try-message": "TrySend", "list-states": "States", "get-state": "State", "preview-template": "Preview", "show-template-html": "PreviewHTML", "lint-template": "Lint", "list-versions": "TemplateVersions", "get-version": "TemplateVersions",
	"list-services": "Services", "get-service": "Services", "put-service": "Services", "delete-service": "Services",
	"list-topics": "Topics", "get-topic": "Topics", "put-topic": "Topics", "delete-topic": "Topics",
	"list-rules": "Rules", "get-rule": "Rules", "put-rule": "Rules", "delete-rule": "Rules",
	"list-templates": "Templates", "get-template": "Templates", "put-template": "Templates", "delete-template": "Templates",
	"get-draft": "Draft", "put-draft": "PutDraft", "delete-draft": "DiscardDraft", "publish-template": "PublishTemplate", "diff-versions": "DiffTemplate",
	"list-channels": "Channels", "get-channel": "Channels", "put-channel": "Channels", "delete-channel": "Channels",
	"list-workers": "Workers", "get-worker": "Worker", "put-worker": "Workers", "delete-worker": "Workers", "list-agents": "Agents",
	"open-session": "OpenSession", "list-sessions": "Sessions", "get-session": "Session", "close-session": "CloseSession", "list-responses": "Responses", "trace-request": "TraceRequest",
}

// notForClients are for people, probes, mail programs and providers.
var notForClients = []string{"show-errors", "is-alive", "is-ready", "get-metrics", "show-unsubscribe", "unsubscribe", "show-undo", "undo-unsubscribe",
	"show-signup", "send-signup", "show-confirmation", "confirm", "show-preferences", "change-preferences", "show-move", "confirm-move", "show-mail-programs", "change-mail-programs", "show-docs", "show-documentation", "take-receipt",
	"attach-client", "attach-instance", "attach-agent"} // packages client/session and client/worker, and the agent, open these

func TestTheGoClientHasEveryOperation(t *testing.T) {
	t.Parallel()
	type operation struct{ OperationID string }
	document := into[struct {
		Paths map[string]map[string]operation
	}](t, run(t, nil, "", "openapi").out)
	others := map[string]bool{}
	for _, id := range notForClients {
		others[id] = true
	}
	count := 0
	for path, byMethod := range document.Paths {
		for method, op := range byMethod {
			count++
			if others[op.OperationID] {
				continue
			}
			name, known := methods[op.OperationID]
			if !known {
				t.Errorf("%s %s (%s): the client has no method for it, or the table here does not name it", method, path, op.OperationID)
				continue
			}
			if _, there := reflect.TypeFor[*client.Client]().MethodByName(name); !there {
				t.Errorf("%s: the client has no method %s", op.OperationID, name)
			}
		}
	}
	if count < 50 {
		t.Errorf("the document has %d operations", count)
	}
}
