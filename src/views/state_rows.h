/* Private to views: what the providers of state rows share: the look of states, sampling of rows on the reference clock,
 * tooltips. */
#ifndef WEFT_VIEWS_STATE_ROWS_H
#define WEFT_VIEWS_STATE_ROWS_H

#include "views/view.h"

/* ---- looks: one table for all clients, the viewer too ---- */

/* Colours by meaning; hatches and dots, which the protocol's styles cannot tell, are the viewer's: it knows them by the
 * style keys. */
#define LOOK_RUNNING "#2e9e5b"
#define LOOK_SYSCALL "#3a6ea5"
#define LOOK_PREEMPTED "#d98e04"
#define LOOK_BLOCKED "#b5524a"
#define LOOK_NETWORK "#b45cc4"
#define LOOK_BLOCK_DEVICE "#6a4fb3"
#define LOOK_TIMER "#5f8aa8"
#define LOOK_INTERRUPTED "#e0c341"
#define LOOK_STOLEN "#c62828"
#define LOOK_HYPERVISOR "#8a5a2b"
#define LOOK_UNKNOWN "#6b6b6b"
#define LOOK_IDLE "#9aa0a6"

/* Colours that tell values apart. */
enum { VIEW_PALETTE = 12 };
extern const char *const view_palette[VIEW_PALETTE];

/* Style key of an enum state_value, which is also its name to users; NULL for STATE_NONE. */
const char *view_state_key(int value);
/* Adds the styles of states to an open style map: those whose bit, 1 << enum state_value, is set. */
void view_write_state_styles(struct tsp_answer *answer, unsigned states);
#define VIEW_STATE(value) (1u << STATE_##value)

/* ---- rows of states ---- */

/* The host's last instant that is not after t on the reference clock: an interval that holds it holds t once its bounds
 * are converted. */
int64_t view_sample_time(const struct view_host *, int64_t t);

struct view_state_row { int64_t entry; size_t host; int kind; size_t row; int view; /* the provider's own */ };
enum { VIEW_SHOWN_PROPERTIES = 12 };
struct view_shown {
    const char *label, *style_key;         /* style_key NULL: a blank */
    struct tsp_property properties[VIEW_SHOWN_PROPERTIES]; size_t n;
    char numbers[VIEW_SHOWN_PROPERTIES][24]; /* room for texts of the properties */
    char text[48];                         /* room for the label */
};
/* How an interval is shown; with_properties: something filters, so the properties are wanted (label, start and duration
 * are added by the caller). */
typedef void view_show_state(struct views *, const struct view_state_row *, const struct state_interval *,
    bool with_properties, struct view_shown *);
void view_add_property(struct view_shown *, const char *key, const char *value); /* value NULL: none */
void view_add_number(struct view_shown *, const char *key, int64_t value);

/* Writes rows of states: begin, one call per row, end. Memory is the request's. */
struct view_sampler {
    struct views *x; const struct tsp_query *q; struct tsp_answer *answer;
    view_show_state *show;
    int64_t **times;                       /* by host: sample times on its clock, made on first use */
    struct state_interval *found;          /* room for one row */
};
struct view_sampler view_begin_sampling(struct views *, const struct tsp_query *, struct tsp_answer *answer,
    view_show_state *);
/* Stops writing when the answer is full or the client has gone: false then. */
bool view_sample_row(struct view_sampler *, const struct view_state_row *);
/* The same; `sample` stands for state_sample where what is shown is not just the intervals of the row. NULL:
 * state_sample. */
typedef size_t view_sample_function(const struct state_store *, size_t row, const int64_t *times, size_t n,
    struct state_interval *out);
bool view_sample_row_by(struct view_sampler *, const struct view_state_row *, view_sample_function *sample);
void view_end_sampling(struct view_sampler *);

/* A row of intervals of the reference clock that are at hand by number: in time order, without overlap. */
struct view_spans {
    void *arg; size_t n;
    void (*bounds)(void *arg, size_t i, int64_t *begin, int64_t *end);
    /* Writes the interval; false: not, because `only_matches` and the filter is against it. */
    bool (*write)(void *arg, size_t i, bool only_matches);
};
/* Number of the last interval that begins at or before t; SIZE_MAX: none. */
size_t view_find_span(const struct view_spans *, int64_t t);
/* Writes the row: the intervals in force at samples, and blanks of the experiment's time in between. */
void view_write_spans(const struct view_spans *, const struct views *, const struct tsp_query *, int64_t entry,
    struct tsp_answer *answer);

/* ---- tooltips ---- */

/* Entry and time that a tooltip asks about; false when it names none. */
bool view_tooltip_target(const struct tsp_query *, int64_t *entry, int64_t *time);
/* Adds start, end and duration of [begin, end) on the reference clock to an open tooltip. */
void view_write_span(struct tsp_answer *answer, int64_t begin, int64_t end);
/* Adds the error of the host's clock at t (reference clock), where it has one. */
void view_write_clock_error(struct tsp_answer *answer, const struct view_host *, int64_t t);
/* Arrows of views that have none: an empty list. */
view_operation view_no_arrows;

#endif
