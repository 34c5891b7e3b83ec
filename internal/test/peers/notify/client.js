// Calls the Notify client for Node.js as a plan says, and prints the result of each call in a line of JSON.
const { readFileSync } = require('fs');
const { createRequire } = require('module');

const { NotifyClient } = createRequire(process.argv[3] + '/')('notifications-node-client');
const plan = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const clients = {};
for (const [name, key] of Object.entries(plan.keys)) clients[name] = new NotifyClient(plan.url, key);
const results = {};
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// Replaces $step.member by a member of an earlier result, and files by prepared uploads.
function resolve(value) {
  if (typeof value === 'string' && value.startsWith('$')) {
    const [name, ...path] = value.slice(1).split('.');
    return path.reduce((found, member) => found[member], results[name]);
  }
  if (Array.isArray(value)) return value.map(resolve);
  if (value === null || typeof value !== 'object') return value;
  if ('upload' in value) {
    const options = {};
    if ('filename' in value) options.filename = value.filename;
    if ('confirm_email_before_download' in value) options.confirmEmailBeforeDownload = value.confirm_email_before_download;
    if ('retention_period' in value) options.retentionPeriod = value.retention_period;
    return clients.live.prepareUpload(Buffer.from(value.upload), options);
  }
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, resolve(v)]));
}

// Returns the options of a call, without those that are not set.
function options(pairs) {
  return Object.fromEntries(Object.entries(pairs).filter(([, v]) => v !== undefined));
}

// Requests pages until one is empty.
async function pages(first, next, members) {
  const all = [];
  let page = (await first()).data;
  while (page[members].length > 0) {
    all.push(...page[members]);
    page = (await next(new URL(page.links.next).searchParams.get('older_than'))).data;
  }
  return { data: { [members]: all } };
}

const calls = {
  email: (c, a) => c.sendEmail(a.template_id, a.email_address, options({ personalisation: a.personalisation, reference: a.reference, emailReplyToId: a.email_reply_to_id, oneClickUnsubscribeURL: a.one_click_unsubscribe_url, sanitiseContentFor: a.sanitise_content_for })),
  sms: (c, a) => c.sendSms(a.template_id, a.phone_number, options({ personalisation: a.personalisation, reference: a.reference, smsSenderId: a.sms_sender_id })),
  letter: (c, a) => c.sendLetter(a.template_id, options({ personalisation: a.personalisation, reference: a.reference })),
  precompiled: (c, a) => c.sendPrecompiledLetter(a.reference, Buffer.from(a.content), a.postage),
  notification: (c, a) => c.getNotificationById(a.id),
  pdf: async (c, a) => ({ data: { pdf: (await c.getPdfForLetterNotification(a.id)).toString('base64') } }),
  notifications: (c, a) => c.getNotifications(a.template_type, a.status, a.reference, a.older_than),
  all_notifications: (c, a) => pages(() => c.getNotifications(a.template_type, a.status, a.reference), (id) => c.getNotifications(a.template_type, a.status, a.reference, id), 'notifications'),
  template: (c, a) => c.getTemplateById(a.id),
  template_version: (c, a) => c.getTemplateByIdAndVersion(a.id, a.version),
  templates: (c, a) => c.getAllTemplates(a.template_type),
  preview: (c, a) => c.previewTemplateById(a.id, a.personalisation),
  received: (c, a) => c.getReceivedTexts(a.older_than),
  all_received: (c) => pages(() => c.getReceivedTexts(), (id) => c.getReceivedTexts(id), 'received_text_messages'),
  poll: async (c, a) => {
    const until = Date.now() + 30000;
    for (;;) {
      const found = await c.getNotificationById(a.id);
      if (found.data.status === a.status || Date.now() > until) return found;
      await sleep(100);
    }
  },
};

(async () => {
  for (const step of plan.steps) {
    const line = { step: step.name };
    try {
      line.result = results[step.name] = (await calls[step.call](clients[step.key], resolve(step.args || {}))).data;
    } catch (e) {
      const data = e.response && e.response.data;
      if (data && data.errors) {
        line.status = e.response.status;
        line.errors = data.errors;
        line.code = data.status_code;
      } else {
        line.failure = String(e.message || e) + (data ? ' ' + JSON.stringify(data) : '');
      }
    }
    console.log(JSON.stringify(line));
  }
})();
