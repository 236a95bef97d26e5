/* date.c - dates in HTTP's formats.
 *
 *     Sun, 06 Nov 1994 08:49:37 GMT     the one to write
 *     Sunday, 06-Nov-94 08:49:37 GMT    of RFC 850
 *     Sun Nov  6 08:49:37 1994          of asctime(3)
 *
 * The arithmetic uses years that begin in March, so that a leap day is the last day of its
 * year.  Names are case-sensitive.  Whether the day of the week matches the date is not
 * checked.
 */
#include "http/parse/http_values.h"
#include <stdio.h>
#include "http/parse/parse_inner.h"

#define DAY 86400

static const char days[] = "MonTueWedThuFriSatSun";
static const char *const long_days[] = { "Monday", "Tuesday",  "Wednesday", "Thursday",
	                                 "Friday", "Saturday", "Sunday" };
static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

struct moment {
	int64_t year;
	int month, day; /* from 1 */
	int hour, minute, second;
};

/* Days from 1970-01-01 to a date. */
static int64_t
days_to(int64_t year, int month, int day)
{
	int64_t y = month > 2 ? year : year - 1;
	int64_t m = month > 2 ? month - 3 : month + 9;
	int64_t century = (y >= 0 ? y : y - 399) / 400;
	int64_t of_era = y - century * 400;
	int64_t of_year = (153 * m + 2) / 5 + day - 1;

	return century * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* The inverse of days_to(). */
static void
date_of(int64_t count, struct moment *out)
{
	int64_t z = count + 719468;
	int64_t era = (z >= 0 ? z : z - 146096) / 146097;
	int64_t of_era = z - era * 146097;
	int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
	int64_t m = (5 * of_year + 2) / 153;

	out->day = (int)(of_year - (153 * m + 2) / 5 + 1);
	out->month = (int)(m < 10 ? m + 3 : m - 9);
	out->year = year + era * 400 + (out->month <= 2);
}

int
weft__http_date_format(int64_t seconds, char out[WEFT__HTTP_DATE_SIZE])
{
	int64_t count = seconds / DAY - (seconds % DAY < 0);
	int64_t rest = seconds - count * DAY;
	char text[96];
	struct moment x;
	int weekday;

	if (count < days_to(0, 1, 1) || count > days_to(9999, 12, 31))
		return weft_fail(WEFT_EINVAL, "weft_http_*: date out of range");
	date_of(count, &x);
	/* 1970-01-01 was a Thursday.  Year 0 is some 103,000 weeks earlier, so the sum is
	 * positive. */
	weekday = (int)((count + 3 + INT64_C(7) * 200000) % 7);
	(void)snprintf(text, sizeof(text), "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT",
	               days + weekday * 3, x.day, months + (x.month - 1) * 3, (int)x.year,
	               (int)(rest / 3600), (int)(rest / 60 % 60), (int)(rest % 60));
	memcpy(out, text, WEFT__HTTP_DATE_SIZE);
	return 0;
}

/* --- parsing ---------------------------------------------------------------- */

/* The rest of the input; `bad` is set once the input is not as expected. */
struct reader {
	const char *at, *end;
	bool bad;
};

static void
expect(struct reader *r, const char *text, size_t size)
{
	if ((size_t)(r->end - r->at) < size || memcmp(r->at, text, size) != 0)
		r->bad = true;
	else
		r->at += size;
}

/* A number of exactly `count` digits. */
static int
digits(struct reader *r, int count)
{
	int number = 0;

	if (r->end - r->at < count) {
		r->bad = true;
		return 0;
	}
	for (int i = 0; i < count; i++, r->at++) {
		r->bad |= !byte_is(*r->at, BYTE_DIGIT);
		number = number * 10 + (*r->at - '0');
	}
	return number;
}

/* Match one of the three-letter names.  Returns its index from 1; or 0, and sets `bad`. */
static int
name(struct reader *r, const char *names)
{
	if (r->end - r->at >= 3)
		for (int i = 0; names[i * 3]; i++)
			if (memcmp(r->at, names + i * 3, 3) == 0) {
				r->at += 3;
				return i + 1;
			}
	r->bad = true;
	return 0;
}

/* The full year for a year of two digits: the latest not more than 50 years after `now`. */
static int64_t
full_year(int two, int64_t now)
{
	struct moment today;
	int64_t year;

	date_of(now / DAY - (now % DAY < 0), &today);
	year = today.year - today.year % 100 + two;
	if (year > today.year + 50)
		year -= 100;
	else if (year + 100 <= today.year + 50)
		year += 100;
	return year;
}

/* Read a date of a form: %d is a day of two digits, %e the same or a space and one digit, %b a
 * month, %y and %Y a year of two and of four digits, %T a time of day. */
static void
read_form(struct reader *r, const char *form, int64_t now, struct moment *out)
{
	for (; *form; form++) {
		if (*form != '%') {
			expect(r, form, 1);
			continue;
		}
		switch (*++form) {
		case 'e':
			if (r->at < r->end && *r->at == ' ') {
				r->at++;
				out->day = digits(r, 1);
				break;
			} /* fallthrough */
		case 'd':
			out->day = digits(r, 2);
			break;
		case 'b':
			out->month = name(r, months);
			break;
		case 'y':
			out->year = full_year(digits(r, 2), now);
			break;
		case 'Y':
			out->year = digits(r, 4);
			break;
		default:
			out->hour = digits(r, 2);
			expect(r, ":", 1);
			out->minute = digits(r, 2);
			expect(r, ":", 1);
			out->second = digits(r, 2);
		}
	}
}

static bool
is_real(const struct moment *x)
{
	static const char last[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = x->year % 4 == 0 && (x->year % 100 != 0 || x->year % 400 == 0);

	return x->day >= 1 && x->day <= last[x->month - 1] && (x->month != 2 || x->day < 29 || leap)
	       && x->hour < 24 && x->minute < 60 && x->second <= 60; /* a leap second */
}

int
weft__http_date_parse(const char *value, size_t size, int64_t now, int64_t *out)
{
	struct reader r = { value, value + size, false };
	struct moment x = { 0 };
	int day = name(&r, days);

	if (!r.bad && r.at < r.end && *r.at == ',') {
		read_form(&r, ", %d %b %Y %T GMT", now, &x);
	} else if (!r.bad && r.at < r.end && *r.at == ' ') {
		read_form(&r, " %b %e %T %Y", now, &x);
	} else if (!r.bad) {
		r.at = value;
		expect(&r, long_days[day - 1], strlen(long_days[day - 1]));
		read_form(&r, ", %d-%b-%y %T GMT", now, &x);
	}
	if (r.bad || r.at != r.end || !is_real(&x))
		return weft_fail(WEFT_EINVAL, "weft_http_*: bad date");
	*out = days_to(x.year, x.month, x.day) * DAY + x.hour * 3600 + x.minute * 60 + x.second;
	return 0;
}

bool
weft__http_modified_since(const char *value, size_t size, int64_t modified, int64_t now)
{
	int64_t since;

	return weft__http_date_parse(value, size, now, &since) < 0 || since > now
	       || modified > since;
}
