#include "base/yaml.h"

#include <yaml.h>

/* The deepest value is a name in a list of an outcome: destinations / name / calls / item / outcomes / item / values / item. */
enum { DEPTH_MAX = 8 };

struct reader {
    struct bytes text;
    struct arena *arena;
    struct yaml_problems *problems;
    struct yaml *open[DEPTH_MAX];
    size_t depth;
    struct yaml *root;
    size_t documents;
    bool no_memory;
    bool stopped; /* a problem behind which nothing can be understood */
};

bool yaml_is_absent(const struct yaml *node)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    if (node->kind != YAML_TEXT || !node->plain)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (bytes_is(node->text, words[i]))
            return true;
    return false;
}

/* ---- the text before it is YAML ---- */

struct place {
    size_t line, column;
};

/* Where byte `offset` is; columns count characters. */
static struct place place_of(struct bytes text, size_t offset)
{
    struct place place = {1, 1};
    for (size_t i = 0; i < offset && i < text.len; i++) {
        if (text.at[i] == '\n')
            place = (struct place){place.line + 1, 1};
        else if (((unsigned char)text.at[i] & 0xC0) != 0x80)
            place.column++;
    }
    return place;
}

/* The offset of the first byte that begins no well-formed character, or text.len. */
static size_t first_bad_byte(struct bytes text)
{
    size_t at = 0;
    while (at < text.len) {
        size_t size = 1;
        while (size <= 4 && at + size <= text.len && !bytes_is_utf8((struct bytes){text.at + at, size}))
            size++;
        if (size > 4 || at + size > text.len)
            return at;
        at += size;
    }
    return at;
}

static bool text_is_readable(struct bytes text, struct yaml_problems *problems)
{
    if (text.len > YAML_SIZE_MAX) {
        yaml_problem_add(problems, 1, 1, "the document has %zu bytes; at most %d are read", text.len, YAML_SIZE_MAX);
        return false;
    }
    if (!bytes_is_utf8(text)) {
        struct place place = place_of(text, first_bad_byte(text));
        yaml_problem_add(problems, place.line, place.column, "this is not UTF-8; save the file as UTF-8");
        return false;
    }
    const char *nul = memchr(text.at, '\0', text.len);
    if (nul != NULL) {
        struct place place = place_of(text, (size_t)(nul - text.at));
        yaml_problem_add(problems, place.line, place.column, "a NUL character; remove it");
        return false;
    }
    return true;
}

/* ---- syntax errors in words ---- */

static struct bytes line_of(struct bytes text, size_t line)
{
    struct bytes rest = text, found = {text.at, 0};
    for (size_t i = 0; i < line && rest.len > 0; i++)
        found = bytes_cut(&rest, '\n');
    return found;
}

static bool is_indented_by_tab(struct bytes line)
{
    size_t at = 0;
    while (at < line.len && line.at[at] == ' ')
        at++;
    return at < line.len && line.at[at] == '\t';
}

/* `key: {id}:{day}` without quotes is the beginning of a map to YAML. */
static bool has_bare_template(struct bytes line)
{
    const char *name = line.at != NULL ? memmem(line.at, line.len, "key:", 4) : NULL;
    if (name == NULL)
        return false;
    struct bytes value = bytes_trim(bytes_from(line, (size_t)(name - line.at) + 4));
    return bytes_starts(value, BYTES("{"));
}

static void add_scan_problem(struct reader *reader, const yaml_parser_t *parser)
{
    size_t line = parser->problem_mark.line + 1, column = parser->problem_mark.column + 1;
    size_t context_line = parser->context_mark.line + 1;
    if (is_indented_by_tab(line_of(reader->text, line)))
        yaml_problem_add(reader->problems, line, 1, "a tab in the indentation; YAML wants spaces");
    else if (has_bare_template(line_of(reader->text, line)) || has_bare_template(line_of(reader->text, line - 1)) ||
             (parser->context != NULL && has_bare_template(line_of(reader->text, context_line))))
        yaml_problem_add(reader->problems, line, column, "a key that begins with '{' needs quotes: key: \"{id}:{day}\"");
    else
        yaml_problem_add(reader->problems, line, column, "this is not YAML: %s%s%s",
                         parser->problem != NULL ? parser->problem : "unreadable", parser->context != NULL ? " " : "",
                         parser->context != NULL ? parser->context : "");
}

static void add_syntax_problem(struct reader *reader, const yaml_parser_t *parser)
{
    if (parser->error == YAML_MEMORY_ERROR) {
        reader->no_memory = true;
    } else if (parser->error == YAML_READER_ERROR) {
        struct place place = place_of(reader->text, parser->problem_offset);
        yaml_problem_add(reader->problems, place.line, place.column, "%s; remove it",
                         parser->problem != NULL ? parser->problem : "an unreadable character");
    } else {
        add_scan_problem(reader, parser);
    }
}

/* ---- building the tree ---- */

static struct yaml *add_node(struct reader *reader, const yaml_event_t *event, enum yaml_kind kind)
{
    struct yaml *node = arena_zalloc(reader->arena, 1, sizeof *node);
    if (node == NULL) {
        reader->no_memory = true;
        return NULL;
    }
    node->kind = kind;
    node->line = event->start_mark.line + 1;
    node->column = event->start_mark.column + 1;
    if (reader->depth == 0) {
        reader->root = node;
        return node;
    }
    struct yaml *parent = reader->open[reader->depth - 1];
    if (parent->last != NULL)
        parent->last->next = node;
    else
        parent->first = node;
    parent->last = node;
    parent->count++;
    return node;
}

static void refuse_marks(struct reader *reader, const struct yaml *node, const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor != NULL)
        yaml_problem_add(reader->problems, node->line, node->column,
                         "anchors (&name) are not allowed; write the value out, or use defaults");
    if (tag != NULL)
        yaml_problem_add(reader->problems, node->line, node->column, "tags (!name) are not allowed; write the plain value");
}

static void on_scalar(struct reader *reader, const yaml_event_t *event)
{
    struct yaml *node = add_node(reader, event, YAML_TEXT);
    if (node == NULL)
        return;
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node->text = arena_dup(reader->arena, (struct bytes){(const char *)event->data.scalar.value, event->data.scalar.length});
    reader->no_memory |= node->text.at == NULL;
    refuse_marks(reader, node, event->data.scalar.anchor, event->data.scalar.tag);
}

static void on_alias(struct reader *reader, const yaml_event_t *event)
{
    struct yaml *node = add_node(reader, event, YAML_REFUSED);
    if (node != NULL)
        yaml_problem_add(reader->problems, node->line, node->column,
                         "aliases (*name) are not allowed; write the value out, or use defaults");
}

static void on_open(struct reader *reader, const yaml_event_t *event, enum yaml_kind kind)
{
    struct yaml *node = add_node(reader, event, kind);
    if (node == NULL)
        return;
    if (kind == YAML_MAP)
        refuse_marks(reader, node, event->data.mapping_start.anchor, event->data.mapping_start.tag);
    else
        refuse_marks(reader, node, event->data.sequence_start.anchor, event->data.sequence_start.tag);
    if (reader->depth == DEPTH_MAX) {
        yaml_problem_add(reader->problems, node->line, node->column, "nested more than %d deep; no setting is", DEPTH_MAX);
        reader->stopped = true;
        return;
    }
    reader->open[reader->depth++] = node;
}

static void on_close(struct reader *reader)
{
    struct yaml *node = reader->open[--reader->depth];
    if (node->kind == YAML_MAP)
        node->count /= 2;
}

static void on_document(struct reader *reader, const yaml_event_t *event)
{
    if (++reader->documents == 1)
        return;
    yaml_problem_add(reader->problems, event->start_mark.line + 1, event->start_mark.column + 1,
                     "a second document begins here; only one is read");
    reader->stopped = true;
}

static void on_event(struct reader *reader, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        on_document(reader, event);
        break;
    case YAML_SCALAR_EVENT:
        on_scalar(reader, event);
        break;
    case YAML_ALIAS_EVENT:
        on_alias(reader, event);
        break;
    case YAML_SEQUENCE_START_EVENT:
        on_open(reader, event, YAML_LIST);
        break;
    case YAML_MAPPING_START_EVENT:
        on_open(reader, event, YAML_MAP);
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        on_close(reader);
        break;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
}

static void read_events(struct reader *reader, yaml_parser_t *parser)
{
    bool ended = false;
    while (!ended && !reader->stopped && !reader->no_memory) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) {
            add_syntax_problem(reader, parser);
            reader->stopped = true;
            return;
        }
        ended = event.type == YAML_STREAM_END_EVENT;
        on_event(reader, &event);
        yaml_event_delete(&event);
    }
}

enum status yaml_read(struct bytes text, struct arena *arena, struct yaml **ret_root, struct yaml_problems *problems)
{
    if (!text_is_readable(text, problems))
        return INVALID;
    if (bytes_starts(text, BYTES("\xEF\xBB\xBF"))) /* a byte order mark says nothing in UTF-8 */
        text = bytes_from(text, 3);
    struct reader reader = {.text = text, .arena = arena, .problems = problems};
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return FULL;
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.at, text.len);
    read_events(&reader, &parser);
    yaml_parser_delete(&parser);
    if (reader.no_memory)
        return FULL;
    if (reader.stopped)
        return INVALID;
    *ret_root = reader.root;
    return OK;
}
