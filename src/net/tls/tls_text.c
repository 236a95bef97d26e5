/* tls_text.c - turns a failure of OpenSSL into an error and a text.
 *
 * OpenSSL has a queue of errors for each thread.  It is cleared before each call and after each
 * failure, so all its entries are of this call.  The first entry of the SSL library is the
 * cause: entries before it are of the libraries below, those after it of its callers.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <openssl/err.h>
#include "net/tls/tls_set.h"

#define WHY_BYTES 900 /* of a text, so that weft_fail() can put something before it */

/* Our error and text, by a reason code of OpenSSL. */
struct word {
	int reason;
	int error;
	const char *text;
};

static const struct word words[] = {
	{ SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, WEFT_ECERT,
	  "the client has sent no certificate" },
	{ SSL_R_UNEXPECTED_EOF_WHILE_READING, WEFT_ETRUNCATED,
	  "the connection ended without a close_notify" },
	{ SSL_R_HTTP_REQUEST, WEFT_EPROTO, "the peer sent plain HTTP instead of TLS" },
	{ SSL_R_HTTPS_PROXY_REQUEST, WEFT_EPROTO,
	  "the peer sent a plain HTTP proxy request instead of TLS" },
	{ SSL_R_WRONG_VERSION_NUMBER, WEFT_EPROTO,
	  "the peer does not speak TLS, or an unknown version of it" },
	{ SSL_R_UNSUPPORTED_PROTOCOL, WEFT_EPROTO,
	  "the peer wants a version of TLS that is not allowed" },
	{ SSL_R_VERSION_TOO_LOW, WEFT_EPROTO, "the peer wants a version of TLS that is too old" },
	{ SSL_R_NO_SHARED_CIPHER, WEFT_EPROTO, "no cipher in common with the peer" },
	{ SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, WEFT_EPROTO,
	  "no signature algorithm in common with the peer" },
	{ SSL_R_NO_SUITABLE_KEY_SHARE, WEFT_EPROTO, "no key exchange in common with the peer" },
	{ SSL_R_NO_SHARED_GROUPS, WEFT_EPROTO, "no key exchange in common with the peer" },
	{ SSL_R_NO_APPLICATION_PROTOCOL, WEFT_EPROTO,
	  "no application protocol (ALPN) in common with the peer" },
	{ SSL_R_RECORD_LENGTH_MISMATCH, WEFT_EPROTO, "a malformed record" },
	{ SSL_R_ENCRYPTED_LENGTH_TOO_LONG, WEFT_EPROTO, "a record is larger than allowed" },
	{ SSL_R_PACKET_LENGTH_TOO_LONG, WEFT_EPROTO, "a record is larger than allowed" },
	{ SSL_R_DATA_LENGTH_TOO_LONG, WEFT_EPROTO, "a record is larger than allowed" },
	{ SSL_R_EXCESSIVE_MESSAGE_SIZE, WEFT_EPROTO, "a handshake message is larger than allowed" },
	{ SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC, WEFT_EPROTO,
	  "a record was changed on its way" },
	{ SSL_R_BAD_SIGNATURE, WEFT_EPROTO, "an invalid signature" },
	{ SSL_R_EE_KEY_TOO_SMALL, WEFT_ECERT, "the certificate has a key that is too weak" },
	{ SSL_R_CA_KEY_TOO_SMALL, WEFT_ECERT, "an authority has a key that is too weak" },
	{ SSL_R_CA_MD_TOO_WEAK, WEFT_ECERT,
	  "a certificate is signed by a digest that is too weak" },
	{ SSL_R_DH_KEY_TOO_SMALL, WEFT_EPROTO, "the peer has a key that is too weak" },
};

/* Alerts of the peer: it has ended the session, and gives the reason. */
static const struct word alerts[] = {
	{ SSL_AD_HANDSHAKE_FAILURE, WEFT_EPROTO,
	  "no parameters in common, or no suitable certificate" },
	{ SSL_AD_BAD_CERTIFICATE, WEFT_ECERT, "our certificate is bad" },
	{ SSL_AD_UNSUPPORTED_CERTIFICATE, WEFT_ECERT,
	  "it does not support our type of certificate" },
	{ SSL_AD_CERTIFICATE_REVOKED, WEFT_ECERT, "our certificate was revoked" },
	{ SSL_AD_CERTIFICATE_EXPIRED, WEFT_ECERT, "our certificate has expired" },
	{ SSL_AD_CERTIFICATE_UNKNOWN, WEFT_ECERT, "our certificate was not accepted" },
	{ SSL_AD_UNKNOWN_CA, WEFT_ECERT, "it does not trust the authority of our certificate" },
	{ SSL_AD_CERTIFICATE_REQUIRED, WEFT_ECERT, "it requires a certificate from us" },
	{ SSL_AD_PROTOCOL_VERSION, WEFT_EPROTO, "it allows none of our TLS versions" },
	{ SSL_AD_UNRECOGNIZED_NAME, WEFT_EPROTO, "it has no certificate for this name" },
	{ SSL_AD_NO_APPLICATION_PROTOCOL, WEFT_EPROTO,
	  "no application protocol (ALPN) in common with the peer" },
	{ SSL_AD_INTERNAL_ERROR, WEFT_EPROTO, "an internal error" },
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct word *
tls_text_find(const struct word *list, size_t count, int reason)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].reason == reason)
			return &list[i];
	return NULL;
}

/* The cause in the queue: the first entry of the SSL library, else the first of all; 0 if the
 * queue reports lack of memory, or is empty.  Clears the queue. */
static unsigned long
cause(void)
{
	unsigned long best = 0, error;
	bool no_memory = false;

	while ((error = ERR_get_error()) != 0) {
		bool ours = ERR_GET_LIB(error) == ERR_LIB_SSL;

		if (ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE)
			no_memory = true;
		if (!best || (ours && ERR_GET_LIB(best) != ERR_LIB_SSL))
			best = error;
	}
	return no_memory ? 0 : best;
}

bool
weft__tls_no_memory(void)
{
	return cause() == 0;
}

char *
weft__tls_text_copy(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = weft__sys->alloc(size);

	if (copy)
		memcpy(copy, text, size);
	return copy;
}

/* Set the error and its text, and keep both for later calls. */
static int
break_with(struct weft__session *s, int error, const char *text)
{
	char buf[WHY_BYTES];

	ERR_clear_error();
	(void)snprintf(buf, sizeof(buf), "tls with %s%s%s: %s", s->name ? "\"" : "a client",
	               s->name ? s->name : "", s->name ? "\"" : "", text);
	s->broken = error;
	weft__sys->release(s->why);
	s->why = weft__tls_text_copy(buf);
	return weft_fail(error, "%s", buf);
}

int
weft__tls_break_by(struct weft__session *s, int error, const char *format, ...)
{
	char buf[WHY_BYTES];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(buf, sizeof(buf), format, args);
	va_end(args);
	return break_with(s, error, buf);
}

static int
break_by_alert(struct weft__session *s, int alert)
{
	const struct word *word = tls_text_find(alerts, COUNT(alerts), alert);

	return weft__tls_break_by(s, word ? word->error : WEFT_EPROTO,
	                          "the peer ended the session: %s (alert %d)",
	                          word ? word->text : SSL_alert_desc_string_long(alert), alert);
}

static int
break_by_reason(struct weft__session *s, unsigned long error)
{
	int reason = ERR_GET_REASON(error);
	const char *text = ERR_reason_error_string(error);
	const struct word *word;

	if (ERR_GET_LIB(error) != ERR_LIB_SSL)
		return break_with(s, WEFT_EPROTO, text ? text : "unknown error");
	if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
		return break_with(s, WEFT_ECERT,
		                  s->verdict ? s->verdict : "certificate not accepted");
	if (reason == SSL_R_CALLBACK_FAILED && s->no_name)
		return break_with(s, WEFT_EPROTO,
		                  "no certificate for the name that the client requested");
	if (reason >= SSL_AD_REASON_OFFSET)
		return break_by_alert(s, reason - SSL_AD_REASON_OFFSET);
	word = tls_text_find(words, COUNT(words), reason);
	if (word)
		return break_with(s, word->error, word->text);
	return break_with(s, WEFT_EPROTO, text ? text : "unknown error");
}

int
weft__tls_break(struct weft__session *s)
{
	unsigned long error = cause();

	if (s->no_memory || error == 0)
		return break_with(s, WEFT_ENOMEM, "out of memory");
	return break_by_reason(s, error);
}
