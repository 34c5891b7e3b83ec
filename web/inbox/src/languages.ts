/** The texts of the element in other languages than English: `FanfareInbox.languages = languages`. */
import type { Texts } from "./texts.ts";

const de: Texts = {
  title: "Posteingang", unread: "Ungelesen", unreadCount: { one: "{count} ungelesene Nachricht", other: "{count} ungelesene Nachrichten" },
  arrived: { one: "Neue Nachricht: {subject}", other: "{count} neue Nachrichten" }, messages: "Nachrichten", message: "Nachricht: {subject}",
  empty: "Sie haben keine Nachrichten.", choose: "Wählen Sie eine Nachricht aus, um sie zu lesen.", loading: "Nachrichten werden geladen …", noSubject: "(kein Betreff)",
  readAll: "Alle als gelesen markieren", markUnread: "Als ungelesen markieren", remove: "Löschen", removed: "Nachricht gelöscht.", undo: "Rückgängig", back: "Zurück", more: "Mehr laden", attachments: "Anhänge",
  imagesBlocked: "Bilder von anderen Seiten sind blockiert, weil der Absender durch sie erfahren kann, dass Sie die Nachricht lesen.", showImages: "Bilder anzeigen",
  truncated: "Diese Nachricht ist zu lang, um ganz angezeigt zu werden.", retry: "Erneut versuchen",
  offline: "Der Posteingang ist nicht erreichbar. Prüfen Sie Ihre Verbindung, und versuchen Sie es erneut.", expired: "Ihre Sitzung ist abgelaufen. Versuchen Sie es erneut, oder melden Sie sich wieder an.",
  forbidden: "Diese Seite darf den Posteingang nicht öffnen. Bitte informieren Sie den Betreiber.", failed: "Auf dem Server ist ein Fehler aufgetreten. Versuchen Sie es gleich noch einmal.",
};

const fr: Texts = {
  title: "Boîte de réception", unread: "Non lu", unreadCount: { one: "{count} message non lu", other: "{count} messages non lus" },
  arrived: { one: "Nouveau message : {subject}", other: "{count} nouveaux messages" }, messages: "Messages", message: "Message : {subject}",
  empty: "Vous n’avez aucun message.", choose: "Sélectionnez un message pour le lire.", loading: "Chargement des messages…", noSubject: "(sans objet)",
  readAll: "Tout marquer comme lu", markUnread: "Marquer comme non lu", remove: "Supprimer", removed: "Message supprimé.", undo: "Annuler", back: "Retour", more: "Afficher plus", attachments: "Pièces jointes",
  imagesBlocked: "Les images d’autres sites sont bloquées, car elles peuvent indiquer à l’expéditeur que vous lisez le message.", showImages: "Afficher les images",
  truncated: "Ce message est trop long pour être affiché en entier.", retry: "Réessayer",
  offline: "La boîte de réception est inaccessible. Vérifiez votre connexion, puis réessayez.", expired: "Votre session a expiré. Réessayez ou reconnectez-vous.",
  forbidden: "Cette page n’est pas autorisée à ouvrir la boîte de réception. Veuillez en informer son responsable.", failed: "Une erreur s’est produite sur le serveur. Réessayez dans un instant.",
};

const es: Texts = {
  title: "Bandeja de entrada", unread: "No leído", unreadCount: { one: "{count} mensaje no leído", other: "{count} mensajes no leídos" },
  arrived: { one: "Mensaje nuevo: {subject}", other: "{count} mensajes nuevos" }, messages: "Mensajes", message: "Mensaje: {subject}",
  empty: "No tiene mensajes.", choose: "Seleccione un mensaje para leerlo.", loading: "Cargando mensajes…", noSubject: "(sin asunto)",
  readAll: "Marcar todo como leído", markUnread: "Marcar como no leído", remove: "Eliminar", removed: "Mensaje eliminado.", undo: "Deshacer", back: "Volver", more: "Cargar más", attachments: "Archivos adjuntos",
  imagesBlocked: "Las imágenes de otros sitios están bloqueadas, porque pueden indicar al remitente que usted lee el mensaje.", showImages: "Mostrar imágenes",
  truncated: "Este mensaje es demasiado largo para mostrarlo entero.", retry: "Reintentar",
  offline: "No se puede acceder a la bandeja de entrada. Compruebe su conexión y vuelva a intentarlo.", expired: "Su sesión ha caducado. Vuelva a intentarlo o inicie sesión de nuevo.",
  forbidden: "Esta página no puede abrir la bandeja de entrada. Informe a su responsable.", failed: "Se ha producido un error en el servidor. Vuelva a intentarlo en un momento.",
};

const ar: Texts = {
  title: "البريد الوارد", unread: "غير مقروءة",
  unreadCount: { zero: "لا رسائل غير مقروءة", one: "رسالة واحدة غير مقروءة", two: "رسالتان غير مقروءتين", few: "{count} رسائل غير مقروءة", other: "{count} رسالة غير مقروءة" },
  arrived: { one: "رسالة جديدة: {subject}", two: "رسالتان جديدتان", few: "{count} رسائل جديدة", other: "{count} رسالة جديدة" }, messages: "الرسائل", message: "رسالة: {subject}",
  empty: "ليست لديك رسائل.", choose: "اختر رسالة لقراءتها.", loading: "جارٍ تحميل الرسائل…", noSubject: "(بلا موضوع)",
  readAll: "تعليم الكل كمقروء", markUnread: "تعليم كغير مقروءة", remove: "حذف", removed: "حُذفت الرسالة.", undo: "تراجع", back: "رجوع", more: "تحميل المزيد", attachments: "المرفقات",
  imagesBlocked: "حُجبت الصور من مواقع أخرى لأنها قد تُعلم المرسل بأنك تقرأ الرسالة.", showImages: "عرض الصور",
  truncated: "هذه الرسالة أطول من أن تُعرض كاملة.", retry: "إعادة المحاولة",
  offline: "تعذّر الوصول إلى البريد الوارد. تحقق من اتصالك ثم أعد المحاولة.", expired: "انتهت جلستك. أعد المحاولة أو سجّل الدخول من جديد.",
  forbidden: "لا يُسمح لهذه الصفحة بفتح البريد الوارد. يُرجى إبلاغ المسؤول عنها.", failed: "حدث خطأ في الخادم. أعد المحاولة بعد قليل.",
};

/** Texts by primary language subtag. */
export const languages: Readonly<Record<string, Texts>> = { de, fr, es, ar };
