/* SPDX-License-Identifier: MIT */
/* Tables: collected cell by cell, written for people, spreadsheets or programs. */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "base/shown.h"

enum { GAP = 2, NARROWEST = 8 };

struct cli_table {
    const struct cli_column *columns; /* borrowed */
    size_t n_columns;
    struct text cells; /* contents of all cells, each terminated */
    struct {
        size_t *v, n, cap;
    } starts;
};

int cli_format_parse(const char *s, int *format, struct err *e)
{
    static const char *const names[] = {[CLI_TABLE] = "table", [CLI_JSON] = "json", [CLI_CSV] = "csv"};
    *format = CLI_TABLE;
    for (int i = 0; s; i++) {
        if (i > CLI_CSV)
            return err_set(e, ERR_ARG, "--format %s: table, json or csv is expected", s);
        if (strcmp(s, names[i]) == 0) {
            *format = i;
            break;
        }
    }
    return ERR_OK;
}

struct cli_table *cli_table_new(const struct cli_column *columns, size_t n)
{
    struct cli_table *t = mem_zalloc(sizeof *t);
    t->columns = columns;
    t->n_columns = n;
    return t;
}

void cli_table_cell(struct cli_table *t, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    vec_push(&t->starts, t->cells.n);
    if (n > 0)
        vsnprintf(text_room(&t->cells, (size_t)n + 1), (size_t)n + 1, fmt, again);
    else
        *text_room(&t->cells, 1) = '\0';
    t->cells.n += (n > 0 ? (size_t)n : 0) + 1;
    va_end(again);
}

void cli_table_number(struct cli_table *t, int64_t v)
{
    cli_table_cell(t, "%lld", (long long)v);
}

void cli_table_text(struct cli_table *t, struct text *s)
{
    cli_table_cell(t, "%s", text_cstr(s));
    s->n = 0;
}

void cli_table_duration(struct cli_table *t, int format, int64_t ns)
{
    struct text s = {.fd = -1};
    format == CLI_TABLE ? text_duration(&s, ns) : text_i64(&s, ns);
    cli_table_text(t, &s);
    text_fini(&s);
}

void cli_table_free(struct cli_table *t)
{
    if (!t)
        return;
    vec_free(&t->starts);
    text_fini(&t->cells);
    free(t);
}

static size_t rows_of(const struct cli_table *t)
{
    return t->n_columns ? (t->starts.n + t->n_columns - 1) / t->n_columns : 0;
}

/* "" for cells that were not given in the last row. */
static const char *cell_text(const struct cli_table *t, size_t row, size_t column)
{
    size_t i = row * t->n_columns + column;
    return i < t->starts.n ? t->cells.v + t->starts.v[i] : "";
}

/* A number as JSON writes it: the cell is copied as it stands. */
static bool is_number(const char *s)
{
    s += *s == '-';
    size_t whole = strspn(s, "0123456789");
    if (!whole || (whole > 1 && *s == '0'))
        return false;
    s += whole;
    if (*s == '.') {
        size_t n = strspn(++s, "0123456789");
        if (!n)
            return false;
        s += n;
    }
    if (*s == 'e' || *s == 'E') {
        s++;
        s += *s == '-' || *s == '+';
        size_t n = strspn(s, "0123456789");
        if (!n)
            return false;
        s += n;
    }
    return !*s;
}

static void write_json(const struct cli_table *t, struct text *out)
{
    size_t rows = rows_of(t);
    text_putc(out, '[');
    for (size_t r = 0; r < rows; r++) {
        struct json j = JSON_TO(out);
        text_puts(out, r ? ",\n" : "\n");
        json_begin_object(&j);
        for (size_t c = 0; c < t->n_columns; c++) {
            const char *cell = cell_text(t, r, c);
            json_key(&j, t->columns[c].name);
            if (t->columns[c].number ? !is_number(cell) : !*cell) {
                json_write_null(&j);
            } else if (t->columns[c].number) {
                json_raw(&j, cell, strlen(cell));
            } else {
                json_write_string(&j, cell);
            }
        }
        json_end_object(&j);
    }
    text_puts(out, rows ? "\n]\n" : "]\n");
}

static void write_csv(const struct cli_table *t, struct text *out)
{
    size_t rows = rows_of(t);
    for (size_t r = 0; r <= rows; r++) {
        for (size_t c = 0; c < t->n_columns; c++) {
            if (c)
                text_putc(out, ',');
            shown_cell(out, r ? cell_text(t, r - 1, c) : t->columns[c].name);
        }
        text_putc(out, '\n');
    }
}

/* Writes at most `width` cells of s; cut text ends with "…". Returns the cells written. */
static size_t write_cut(struct text *out, const char *s, size_t width)
{
    size_t cells = text_cells(s, strlen(s)), shown = cells <= width ? cells : width - 1, end = 0;
    for (size_t i = 0; i < shown; i++)
        end += text_sequence(s + end, strlen(s + end));
    text_put(out, s, end);
    if (shown < cells)
        text_puts(out, "…");
    return shown < cells ? width : cells;
}

static void write_row(const struct cli_table *t, const size_t *widths, size_t row, bool heading, struct text *out)
{
    size_t owed = 0; /* spaces before the next cell that shows something, so that lines do not end with spaces */
    for (size_t c = 0; c < t->n_columns && widths[c]; c++) {
        const char *s = heading ? t->columns[c].name : cell_text(t, row, c);
        size_t cells = text_cells(s, strlen(s));
        size_t lead = cells < widths[c] ? widths[c] - cells : 0;
        if (t->columns[c].right)
            owed += lead;
        if (*s) {
            text_fill(out, ' ', owed);
            owed = 0;
            write_cut(out, s, widths[c]);
        }
        if (!t->columns[c].right)
            owed += lead;
        owed += GAP;
    }
}

static size_t total_of(const size_t *widths, size_t n)
{
    size_t total = 0;
    for (size_t c = 0; c < n; c++)
        total += widths[c] + (c ? GAP : 0);
    return total;
}

/* Takes cells from the widest column of text until the row fits; then drops columns from the right. Numbers are not
 * cut: half a number misleads. */
static void fit(const struct cli_table *t, size_t *widths, size_t width)
{
    size_t n = t->n_columns, total;
    while ((total = total_of(widths, n)) > width) {
        size_t widest = n, second = NARROWEST;
        for (size_t c = 0; c < n; c++) {
            if (t->columns[c].number || t->columns[c].right || widths[c] <= NARROWEST)
                continue;
            if (widest == n || widths[c] > widths[widest]) {
                second = widest == n ? second : widths[widest];
                widest = c;
            } else if (widths[c] > second) {
                second = widths[c];
            }
        }
        if (widest == n)
            break;
        size_t over = total - width, step = widths[widest] > second ? widths[widest] - second : 1;
        widths[widest] -= over < step ? over : step;
    }
    for (size_t c = n; c-- > 1 && total > width;) {
        widths[c] = 0;
        total = total_of(widths, c);
    }
    if (total > width)
        widths[0] = width ? width : 1;
}

/* Cells from traces may hold anything: each as one line that a terminal only shows. */
static void make_shown(struct cli_table *t)
{
    struct text shown = {.fd = -1};
    for (size_t i = 0; i < t->starts.n; i++) {
        const char *s = t->cells.v + t->starts.v[i];
        t->starts.v[i] = shown.n;
        shown_line(&shown, s, strlen(s));
        text_putc(&shown, '\0');
    }
    text_fini(&t->cells);
    t->cells = shown;
}

/* A sentence, broken between words into lines of so many cells. */
static void write_words(const char *s, size_t width, struct text *out)
{
    struct text word = {.fd = -1};
    for (size_t used = 0; *s;) {
        size_t n = strcspn(s, " "), cells = text_cells(s, n);
        if (used && used + 1 + cells > width) {
            text_putc(out, '\n');
            used = 0;
        }
        if (used)
            text_putc(out, ' ');
        word.n = 0;
        text_put(&word, s, n);
        used += (used ? 1 : 0) + write_cut(out, text_cstr(&word), width);
        s += n + (s[n] == ' ');
    }
    text_putc(out, '\n');
    text_fini(&word);
}

/* Columns that have no room are named, with how to see them. */
static void write_left_out(const struct cli_table *t, const size_t *widths, size_t width, struct text *out)
{
    struct text names = {.fd = -1};
    for (size_t c = 0; c < t->n_columns; c++)
        if (!widths[c])
            text_printf(&names, "%s%s", names.n ? ", " : "no room for the columns ", t->columns[c].name);
    if (names.n) {
        text_puts(&names, ": widen the terminal, or give --format csv");
        write_words(text_cstr(&names), width, out);
    }
    text_fini(&names);
}

void cli_table_write_width(struct cli_table *t, int width, struct text *out)
{
    if (!t->n_columns)
        return;
    make_shown(t);
    size_t rows = rows_of(t), *widths = mem_zalloc(t->n_columns * sizeof *widths);
    for (size_t c = 0; c < t->n_columns; c++) {
        widths[c] = text_cells(t->columns[c].name, strlen(t->columns[c].name));
        for (size_t r = 0; r < rows; r++) {
            const char *s = cell_text(t, r, c);
            size_t cells = text_cells(s, strlen(s));
            if (cells > widths[c])
                widths[c] = cells;
        }
        if (!widths[c])
            widths[c] = 1;
    }
    if (width > 0)
        fit(t, widths, (size_t)width);
    cli_bold(out);
    write_row(t, widths, 0, true, out);
    cli_plain(out);
    text_putc(out, '\n');
    for (size_t r = 0; r < rows; r++) {
        write_row(t, widths, r, false, out);
        text_putc(out, '\n');
    }
    write_left_out(t, widths, (size_t)width, out);
    free(widths);
}

void cli_table_write(struct cli_table *t, int format, struct text *out)
{
    if (format == CLI_JSON)
        write_json(t, out);
    else if (format == CLI_CSV)
        write_csv(t, out);
    else
        cli_table_write_width(t, isatty(STDOUT_FILENO) ? cli_width() : 0, out);
}

void cli_table_size(struct cli_table *t, int format, uint64_t bytes)
{
    static const char units[] = "kMGT";
    double v = (double)bytes;
    int unit = -1;
    while (v >= 1000 && unit < 3) {
        v /= 1000;
        unit++;
    }
    if (format != CLI_TABLE)
        cli_table_number(t, (int64_t)bytes);
    else if (unit < 0)
        cli_table_cell(t, "%u B", (unsigned)bytes);
    else
        cli_table_cell(t, "%.1f %cB", v, units[unit]);
}
