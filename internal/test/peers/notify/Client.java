// Calls the Notify client for Java as a plan says, and prints the result of each call in a line of JSON.
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.temporal.ChronoUnit;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.io.ByteArrayInputStream;
import org.json.JSONArray;
import org.json.JSONObject;
import uk.gov.service.notify.*;

public class Client {
  static final Map<String, Object> results = new HashMap<>();

  // Replaces $step.member by a member of an earlier result, and files by prepared uploads.
  static Object resolve(Object value) throws Exception {
    if (value instanceof String text && text.startsWith("$")) {
      String[] path = text.substring(1).split("\\.");
      Object found = results.get(path[0]);
      for (int i = 1; i < path.length; i++) {
        found = found instanceof JSONArray list ? list.get(Integer.parseInt(path[i])) : ((JSONObject) found).get(path[i]);
      }
      return found;
    }
    if (value instanceof JSONArray list) {
      return list.toList();
    }
    if (value instanceof JSONObject object) {
      if (object.has("upload")) {
        byte[] content = object.getString("upload").getBytes(StandardCharsets.UTF_8);
        if (!object.has("filename")) {
          return NotificationClient.prepareUpload(content);
        }
        if (!object.has("retention_period")) {
          return NotificationClient.prepareUpload(content, object.getString("filename"));
        }
        int weeks = Integer.parseInt(object.getString("retention_period").split(" ")[0]);
        return NotificationClient.prepareUpload(content, object.getString("filename"), object.getBoolean("confirm_email_before_download"), new RetentionPeriodDuration(weeks, ChronoUnit.WEEKS));
      }
      return values(object);
    }
    return value;
  }

  static Map<String, Object> values(JSONObject object) throws Exception {
    Map<String, Object> all = new HashMap<>();
    if (object != null) {
      for (String name : object.keySet()) {
        all.put(name, object.isNull(name) ? null : resolve(object.get(name)));
      }
    }
    return all;
  }

  static Object plain(Optional<?> value) {
    return value.<Object>map(v -> v.toString()).orElse(JSONObject.NULL);
  }

  static JSONObject of(Notification n) {
    return new JSONObject().put("id", n.getId().toString()).put("reference", plain(n.getReference())).put("email_address", plain(n.getEmailAddress()))
        .put("phone_number", plain(n.getPhoneNumber())).put("type", n.getNotificationType()).put("status", n.getStatus())
        .put("template", new JSONObject().put("id", n.getTemplateId().toString()).put("version", n.getTemplateVersion()).put("uri", n.getTemplateUri()))
        .put("body", n.getBody()).put("subject", plain(n.getSubject())).put("created_at", n.getCreatedAt().toString())
        .put("sent_at", plain(n.getSentAt())).put("completed_at", plain(n.getCompletedAt())).put("is_cost_data_ready", n.isCostDataReady());
  }

  static JSONObject of(NotificationList list) {
    JSONArray all = new JSONArray();
    list.getNotifications().forEach(n -> all.put(of(n)));
    JSONObject links = new JSONObject().put("current", list.getCurrentPageLink());
    list.getNextPageLink().ifPresent(next -> links.put("next", next));
    return new JSONObject().put("notifications", all).put("links", links);
  }

  static JSONObject of(Template t) {
    JSONObject names = new JSONObject();
    t.getPersonalisation().ifPresent(all -> all.forEach((name, about) -> names.put(name, about)));
    return new JSONObject().put("id", t.getId().toString()).put("type", t.getTemplateType()).put("name", t.getName()).put("version", t.getVersion())
        .put("body", t.getBody()).put("subject", plain(t.getSubject())).put("personalisation", names).put("created_at", t.getCreatedAt().toString())
        .put("created_by", t.getCreatedBy()).put("updated_at", plain(t.getUpdatedAt()));
  }

  static JSONObject sent(Object id, Optional<String> reference, Object template, int version, String uri, JSONObject content) {
    return new JSONObject().put("id", id.toString()).put("reference", plain(reference)).put("content", content)
        .put("template", new JSONObject().put("id", template.toString()).put("version", version).put("uri", uri));
  }

  static JSONObject call(NotificationClient c, String call, JSONObject a) throws Exception {
    Map<String, Object> personalisation = values(a.optJSONObject("personalisation"));
    String reference = a.optString("reference", null);
    String id = a.has("id") ? resolve(a.get("id")).toString() : null;
    String olderThan = a.has("older_than") ? resolve(a.get("older_than")).toString() : null;
    String type = a.optString("template_type", null), status = a.optString("status", null);
    switch (call) {
      case "email": {
        String template = resolve(a.get("template_id")).toString(), to = a.getString("email_address");
        SendEmailResponse r;
        if (a.has("one_click_unsubscribe_url")) {
          r = c.sendEmail(template, to, personalisation, reference, a.optString("email_reply_to_id", null), URI.create(a.getString("one_click_unsubscribe_url")));
        } else if (a.has("email_reply_to_id")) {
          r = c.sendEmail(template, to, personalisation, reference, a.getString("email_reply_to_id"));
        } else {
          r = c.sendEmail(template, to, personalisation, reference);
        }
        return sent(r.getNotificationId(), r.getReference(), r.getTemplateId(), r.getTemplateVersion(), r.getTemplateUri(),
            new JSONObject().put("body", r.getBody()).put("subject", r.getSubject()).put("from_email", plain(r.getFromEmail())).put("one_click_unsubscribe_url", plain(r.getOneClickUnsubscribeURL())));
      }
      case "sms": {
        String template = resolve(a.get("template_id")).toString(), to = a.getString("phone_number");
        SendSmsResponse r = a.has("sms_sender_id") ? c.sendSms(template, to, personalisation, reference, a.getString("sms_sender_id")) : c.sendSms(template, to, personalisation, reference);
        return sent(r.getNotificationId(), r.getReference(), r.getTemplateId(), r.getTemplateVersion(), r.getTemplateUri(), new JSONObject().put("body", r.getBody()).put("from_number", plain(r.getFromNumber())));
      }
      case "letter":
        return new JSONObject(c.sendLetter(resolve(a.get("template_id")).toString(), personalisation, reference).toString());
      case "precompiled":
        return new JSONObject(c.sendPrecompiledLetterWithInputStream(reference, new ByteArrayInputStream(a.getString("content").getBytes(StandardCharsets.UTF_8))).toString());
      case "notification":
        return of(c.getNotificationById(id));
      case "pdf":
        return new JSONObject().put("pdf", Base64.getEncoder().encodeToString(c.getPdfForLetter(id)));
      case "notifications":
        return of(c.getNotifications(status, type, reference, olderThan));
      case "all_notifications": {
        JSONArray all = new JSONArray();
        NotificationList page = c.getNotifications(status, type, reference, null);
        while (!page.getNotifications().isEmpty()) {
          List<Notification> some = page.getNotifications();
          some.forEach(n -> all.put(of(n)));
          page = c.getNotifications(status, type, reference, some.get(some.size() - 1).getId().toString());
        }
        return new JSONObject().put("notifications", all);
      }
      case "template":
        return of(c.getTemplateById(id));
      case "template_version":
        return of(c.getTemplateVersion(id, a.getInt("version")));
      case "templates": {
        JSONArray all = new JSONArray();
        c.getAllTemplates(type == null ? "" : type).getTemplates().forEach(t -> all.put(of(t)));
        return new JSONObject().put("templates", all);
      }
      case "preview": {
        TemplatePreview p = c.generateTemplatePreview(id, personalisation);
        return new JSONObject().put("id", p.getId().toString()).put("type", p.getTemplateType()).put("version", p.getVersion()).put("body", p.getBody()).put("subject", plain(p.getSubject())).put("html", plain(p.getHtml()));
      }
      case "received":
      case "all_received": {
        ReceivedTextMessageList list = c.getReceivedTextMessages(olderThan);
        JSONArray all = new JSONArray();
        list.getReceivedTextMessages().forEach(m -> all.put(m.toString()));
        return new JSONObject().put("received_text_messages", all).put("links", new JSONObject().put("current", list.getCurrentPageLink()));
      }
      case "poll": {
        long until = System.currentTimeMillis() + 30000;
        while (true) {
          Notification found = c.getNotificationById(id);
          if (found.getStatus().equals(a.getString("status")) || System.currentTimeMillis() > until) {
            return of(found);
          }
          Thread.sleep(100);
        }
      }
    }
    throw new IllegalArgumentException("unknown call " + call);
  }

  public static void main(String[] args) throws Exception {
    JSONObject plan = new JSONObject(Files.readString(Path.of(args[0])));
    Map<String, NotificationClient> clients = new HashMap<>();
    JSONObject keys = plan.getJSONObject("keys");
    for (String name : keys.keySet()) {
      clients.put(name, new NotificationClient(keys.getString(name), plan.getString("url")));
    }
    for (Object one : plan.getJSONArray("steps")) {
      JSONObject step = (JSONObject) one, line = new JSONObject().put("step", step.getString("name"));
      try {
        JSONObject result = call(clients.get(step.getString("key")), step.getString("call"), step.optJSONObject("args", new JSONObject()));
        results.put(step.getString("name"), result);
        line.put("result", result);
      } catch (NotificationClientException e) {
        int brace = e.getMessage().indexOf('{');
        if (e.getHttpResult() == 0 || brace < 0) {
          line.put("failure", e.getHttpResult() + " " + e.getMessage());
        } else {
          line.put("status", e.getHttpResult()).put("errors", new JSONObject(e.getMessage().substring(brace)).getJSONArray("errors"));
        }
      } catch (Exception e) { // a failure of the client itself
        line.put("failure", e.toString());
      }
      System.out.println(line);
    }
  }
}
