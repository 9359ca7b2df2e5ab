/* Many readers of a stream of Server-Sent Events and a few publishers, in one thread: more than a Python client can
 * read. It is told on stdin what to do, one command a line, and answers each with one line of JSON.
 *
 *   topic NAME                 one more topic
 *   get REQUEST                what a reader sends; {topic}, {number} and {cursor} are filled in
 *   post REQUEST               head of a publication; {topic}, {number}, {length}
 *   body TEXT                  its body; {topic}, {mark}, {time}
 *   ports READ PUBLISH COUNT DEPTH   where to, and how many publishers; topic t is always published by t modulo COUNT,
 *                              which sends up to DEPTH events before it waits for an acknowledgement
 *   open FROM TO RCVBUF        readers FROM..TO-1, reader i on topic i modulo topics; answers when all are open
 *   cursor TOPIC TEXT          readers of this topic that are opened from now on ask for what came after it
 *   each COUNT                 COUNT events on every topic, as fast as they are acknowledged
 *   closed EVENTS SECONDS      keeps so many events in flight
 *   paced RATE SECONDS         events a second; an event's age counts from when it was due
 *   stall FROM TO              these readers stop reading
 *   storm FROM TO RATE SECONDS these readers connect at once and read what they missed, while RATE events go on
 *   cut FROM TO                how many of these the server cut off, as `delivered`
 *   shut FROM TO               closes readers
 *
 * An event carries ~SEQUENCE:NANOSECONDS~: per topic gapless, so that a loss or a repetition is seen by the reader. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { TOPICS = 256, READERS = 20000, PUBLISHERS = 256, TEXT = 8192, BUCKETS = 40 * 32 };
enum { UNUSED, CONNECTING, WAITING, OPEN, GONE };
typedef int64_t ns;

struct reader {
    int publisher, fd, state, topic, stalled, chunked, left, phase; /* left, phase: of the chunk being read */
    int64_t last, first, wanted, got;                               /* sequences; wanted: reached when caught up */
    ns caught_up;
    char *rest; /* an unfinished line */
    int rest_size, rest_room;
};
struct publisher {
    int publisher, fd, unanswered, in_size, head, tail;
    char in[TEXT];
    struct { int topic; ns due; } *queue; /* a ring of QUEUE entries */
};
enum { QUEUE = 1 << 14 };

static struct reader readers[READERS];
static struct publisher publishers[PUBLISHERS];
static char names[TOPICS][64], cursors[TOPICS][160], get[TEXT], post[TEXT], body[TEXT];
static int topics, publisher_count, depth, read_port, publish_port, poller, open_now, refused, next_topic;
static int64_t sequence[TOPICS], subscribers[TOPICS], expected, delivered, doubled, lost, published, acknowledged, failed;
static int64_t histogram[BUCKETS], samples;
static int sample_below = READERS; /* latency is taken of readers below this number only */

static ns now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void fail(const char *what) {
    fprintf(stderr, "fanload: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* --- ages, in buckets of 3 % */

static void sample(ns age) {
    uint64_t v = age < 32 ? 32 : (uint64_t)age;
    int e = 63 - __builtin_clzll(v);
    int bucket = (e - 5) * 32 + (int)((v >> (e - 5)) & 31);
    histogram[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
    samples++;
}

static double quantile_ms(double q) {
    int64_t below = 0;
    for (int i = 0; i < BUCKETS; i++)
        if ((below += histogram[i]) > q * (double)samples) return (double)((32LL + i % 32) << (i / 32)) / 1e6;
    return 0;
}

/* --- text */

static int fill(char *to, const char *from, int topic, const char *mark, int length) {
    char *start = to;
    while (*from) {
        if (!strncmp(from, "{topic}", 7)) to += sprintf(to, "%s", names[topic]), from += 7;
        else if (!strncmp(from, "{cursor}", 8)) to += sprintf(to, "%s", cursors[topic]), from += 8;
        else if (!strncmp(from, "{number}", 8)) to += sprintf(to, "%d", topic), from += 8;
        else if (!strncmp(from, "{mark}", 6)) to += sprintf(to, "%s", mark), from += 6;
        else if (!strncmp(from, "{length}", 8)) to += sprintf(to, "%d", length), from += 8;
        else if (!strncmp(from, "{time}", 6)) {
            struct timespec t;
            struct tm utc;
            clock_gettime(CLOCK_REALTIME, &t);
            gmtime_r(&t.tv_sec, &utc);
            to += strftime(to, 32, "%Y-%m-%dT%H:%M:%S", &utc);
            to += sprintf(to, ".%03ldZ", t.tv_nsec / 1000000);
            from += 6;
        } else if (!strncmp(from, "\\r\\n", 4)) *to++ = '\r', *to++ = '\n', from += 4;
        else *to++ = *from++;
    }
    *to = 0;
    return (int)(to - start);
}

/* --- sockets */

static int dial(int port, int rcvbuf) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (fd < 0) fail("socket");
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (rcvbuf) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof rcvbuf);
    if (connect(fd, (void *)&to, sizeof to) < 0 && errno != EINPROGRESS) fail("connect");
    return fd;
}

static void watch(int operation, int fd, uint32_t events, void *owner) {
    struct epoll_event event = {.events = events, .data.ptr = owner};
    if (epoll_ctl(poller, operation, fd, &event) < 0) fail("epoll_ctl");
}

/* --- readers */

static void hang_up(struct reader *r) {
    if (r->state == UNUSED || r->state == GONE) return;
    if (r->state == OPEN) open_now--, subscribers[r->topic] -= !r->stalled;
    else refused++;
    close(r->fd);
    r->state = GONE;
}

static void start_reader(int number, int rcvbuf) {
    struct reader *r = &readers[number];
    char *rest = r->rest;
    int room = r->rest_room;
    *r = (struct reader){.state = CONNECTING, .topic = number % topics, .rest = rest, .rest_room = room};
    r->last = r->first = -1;
    r->fd = dial(read_port, rcvbuf);
    watch(EPOLL_CTL_ADD, r->fd, EPOLLOUT, r);
}

static void take(struct reader *r, const char *line, int size, ns at) {
    const char *mark = memchr(line, '~', (size_t)size);
    char *end;
    if (!mark) return; /* a control frame */
    int64_t seq = strtoll(mark + 1, &end, 10);
    ns due = strtoll(end + 1, NULL, 10);
    if (r->last >= 0 && seq <= r->last) { doubled++; return; }
    if (r->last >= 0) lost += seq - r->last - 1;
    else r->first = seq;
    r->last = seq;
    r->got++;
    delivered++;
    if (r - readers < sample_below) sample(at - due);
    if (r->wanted && seq >= r->wanted && !r->caught_up) r->caught_up = at;
}

static void keep(struct reader *r, const char *text, int size) {
    if (r->rest_size + size > r->rest_room) r->rest = realloc(r->rest, (size_t)(r->rest_room = 2 * (r->rest_size + size)));
    memcpy(r->rest + r->rest_size, text, (size_t)size);
    r->rest_size += size;
}

static void lines(struct reader *r, const char *text, int size, ns at) {
    while (size > 0) {
        const char *end = memchr(text, '\n', (size_t)size);
        int length = end ? (int)(end - text) : size;
        if (!end || r->rest_size) keep(r, text, length);
        if (!end) return;
        const char *line = r->rest_size ? r->rest : text;
        int whole = r->rest_size ? r->rest_size : length;
        if (whole > 5 && !memcmp(line, "data:", 5)) take(r, line, whole, at);
        r->rest_size = 0;
        text = end + 1;
        size -= length + 1;
    }
}

/* phase 0: the size line, 1: data, 2: the line break after it */
static void chunks(struct reader *r, const char *text, int size, ns at) {
    while (size > 0) {
        if (r->phase == 1) {
            int part = r->left < size ? r->left : size;
            lines(r, text, part, at);
            text += part, size -= part, r->left -= part;
            if (!r->left) r->phase = 2;
            continue;
        }
        char c = *text++;
        size--;
        if (c == '\n') r->phase = r->phase == 0 && r->left ? 1 : 0;
        else if (c != '\r' && r->phase == 0) r->left = r->left * 16 + (c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
}

static void opened(struct reader *r, char *text, int size, ns at) {
    keep(r, text, size);
    char *end = memmem(r->rest, (size_t)r->rest_size, "\r\n\r\n", 4);
    if (!end) return;
    if (!memmem(r->rest, 16, " 200", 4)) { hang_up(r); return; }
    *end = 0;
    r->chunked = strcasestr(r->rest, "transfer-encoding: chunked") != NULL;
    r->state = OPEN;
    open_now++;
    subscribers[r->topic]++;
    int after = r->rest_size - (int)(end + 4 - r->rest);
    char *copy = memcpy(malloc((size_t)after + 1), end + 4, (size_t)after);
    r->rest_size = 0;
    (r->chunked ? chunks : lines)(r, copy, after, at);
    free(copy);
}

static void on_reader(struct reader *r) {
    static char in[1 << 18];
    if (r->state == CONNECTING) {
        char request[TEXT];
        int size = fill(request, get, r->topic, "", 0);
        if (write(r->fd, request, (size_t)size) != size) { hang_up(r); return; }
        r->state = WAITING;
        watch(EPOLL_CTL_MOD, r->fd, EPOLLIN, r);
        return;
    }
    ssize_t size = recv(r->fd, in, sizeof in, 0);
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) hang_up(r);
    else if (r->state == WAITING) opened(r, in, (int)size, now());
    else (r->chunked ? chunks : lines)(r, in, (int)size, now());
}

/* --- publishers */

static void publish_next(struct publisher *p) {
    char out[2 * TEXT], text[TEXT], mark[64];
    while (p->unanswered < depth && p->head != p->tail) {
        int topic = p->queue[p->head].topic;
        sprintf(mark, "~%010lld:%020lld~", (long long)++sequence[topic], (long long)p->queue[p->head].due);
        p->head = (p->head + 1) % QUEUE;
        int length = fill(text, body, topic, mark, 0);
        int size = fill(out, post, topic, "", length);
        memcpy(out + size, text, (size_t)length);
        p->unanswered++;
        if (send(p->fd, out, (size_t)(size + length), MSG_NOSIGNAL) != size + length) fail("publishing");
    }
}

static void publish(int topic, ns due) {
    struct publisher *p = &publishers[topic % publisher_count];
    p->queue[p->tail].topic = topic;
    p->queue[p->tail].due = due;
    p->tail = (p->tail + 1) % QUEUE;
    if (p->tail == p->head) { errno = ENOBUFS; fail("the server is too slow for this rate"); }
    published++;
    expected += subscribers[topic];
    publish_next(p);
}

static void on_publisher(struct publisher *p) {
    ssize_t size = recv(p->fd, p->in + p->in_size, sizeof p->in - 1 - (size_t)p->in_size, 0);
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) fail("a publisher was disconnected");
    p->in_size += (int)size;
    p->in[p->in_size] = 0;
    char *at = p->in, *end;
    while ((end = strstr(at, "\r\n\r\n"))) {
        char *length = strcasestr(at, "content-length:"), *next = end + 4 + (length && length < end ? atoi(length + 15) : 0);
        if (next > p->in + p->in_size) break;
        if (at[9] != '2' && failed++ < 2) fprintf(stderr, "refused: %.300s\n", at);
        p->unanswered--;
        acknowledged++;
        at = next;
    }
    memmove(p->in, at, (size_t)(p->in_size -= (int)(at - p->in)));
    publish_next(p);
}

/* --- the loop */

static void turn(ns until) {
    struct epoll_event events[256];
    ns left = until - now();
    struct timespec wait = {.tv_sec = left > 0 ? left / 1000000000 : 0, .tv_nsec = left > 0 ? left % 1000000000 : 0};
    int count = epoll_pwait2(poller, events, 256, &wait, NULL);
    for (int i = 0; i < count; i++) {
        struct reader *r = events[i].data.ptr; /* both begin with `publisher` */
        if (r->publisher) on_publisher(events[i].data.ptr);
        else if (r->state != GONE) on_reader(r);
    }
}

/* until all is there, or nothing has come for two seconds */
static void settle(void) {
    ns moved = now();
    int64_t before = delivered + acknowledged;
    while ((delivered < expected || acknowledged < published) && now() - moved < 2000000000LL) {
        turn(now() + 20000000);
        if (delivered + acknowledged != before) moved = now(), before = delivered + acknowledged;
    }
}

static void begin(void) {
    memset(histogram, 0, sizeof histogram);
    samples = doubled = lost = delivered = expected = published = acknowledged = 0;
}

static double own_cpu_s(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void answer(double seconds, int64_t counted, double caught_up_s) {
    printf("{\"seconds\":%.4f,\"delivered\":%lld,\"events\":%lld,\"missing\":%lld,\"gaps\":%lld,\"doubled\":%lld,"
           "\"failed\":%lld,\"open\":%d,\"refused\":%d,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f,"
           "\"caught_up_s\":%.4f,\"total\":%lld,\"own_cpu_s\":%.2f}\n",
           seconds, (long long)counted, (long long)published, (long long)(expected - delivered), (long long)lost,
           (long long)doubled, (long long)failed, open_now, refused, quantile_ms(0.5), quantile_ms(0.99),
           quantile_ms(0.99999999), caught_up_s, (long long)delivered, own_cpu_s());
    fflush(stdout);
}

static void open_readers(int from, int to, int rcvbuf, int at_once) {
    int next = from, waiting = 0;
    ns deadline = now() + 60000000000LL;
    do {
        waiting = 0;
        for (int i = from; i < next; i++) waiting += readers[i].state == CONNECTING || readers[i].state == WAITING;
        for (; next < to && waiting < at_once; next++, waiting++) start_reader(next, rcvbuf);
        turn(now() + 5000000);
    } while ((next < to || waiting) && now() < deadline);
}

static int64_t paced(double rate, double seconds, int (*done)(void)) {
    ns start = now(), until = start + (ns)(seconds * 1e9);
    int64_t sent = 0;
    while (now() < until && !(done && done())) {
        ns due = start + (ns)((double)(sent + 1) * 1e9 / rate);
        if (rate > 0 && due <= now()) publish(next_topic++ % topics, due), sent++;
        else turn(rate > 0 && due < until ? due : now() + 2000000);
    }
    return delivered;
}

static void closed(double events, double seconds) {
    ns start = now(), until = start + (ns)(seconds * 1e9);
    while (now() < until) {
        double each = (double)open_now / topics;
        while ((double)(expected - delivered) < events * each && published - acknowledged < 2 * (int64_t)events)
            publish(next_topic++ % topics, now());
        turn(now() + 2000000);
    }
    double took = (double)(now() - start) / 1e9;
    int64_t counted = delivered;
    settle();
    answer(took, counted, 0);
}

static int storm_from, storm_to;
static int storm_over(void) {
    for (int i = storm_from; i < storm_to; i++)
        if (!readers[i].caught_up && readers[i].state != GONE) return 0;
    return 1;
}

/* events that the readers below this number have not had yet */
static int64_t behind(int to) {
    int64_t events = 0;
    for (int i = 0; i < to; i++) events += sequence[i % topics] - readers[i].last;
    return events;
}

static void storm(double rate, double seconds) {
    ns start = now(), last = 0;
    sample_below = storm_from;
    for (int i = storm_from; i < storm_to; i++) {
        start_reader(i, 0);
        readers[i].wanted = sequence[i % topics];
        readers[i].last = 1; /* the cursor is that of the first event */
    }
    paced(rate, seconds, storm_over);
    for (int i = storm_from; i < storm_to; i++)
        if (readers[i].caught_up > last) last = readers[i].caught_up;
    int all = storm_over();
    paced(rate, 1, NULL); /* and live afterwards */
    int64_t missing = behind(storm_to);
    for (ns moved = now(); missing && now() - moved < 2000000000LL;) { /* what is late is not lost */
        turn(now() + 20000000);
        int64_t left = behind(storm_to);
        if (left != missing) moved = now(), missing = left;
    }
    int64_t counted = delivered;
    expected = delivered + missing;
    answer((double)(now() - start) / 1e9, counted, all ? (double)(last - start) / 1e9 : -1);
    sample_below = READERS;
}

static void each_topic(int64_t count) {
    ns start = now();
    for (int64_t i = 0; i < count; i++) {
        for (int t = 0; t < topics; t++) publish(t, now());
        while (published - acknowledged > 4 * publisher_count) turn(now() + 1000000);
    }
    settle();
    answer((double)(now() - start) / 1e9, delivered, 0);
}

static void connect_publishers(int count) {
    publisher_count = count;
    for (int i = 0; i < count; i++) {
        struct publisher *p = &publishers[i];
        p->publisher = 1;
        p->queue = malloc(QUEUE * sizeof *p->queue);
        p->fd = dial(publish_port, 0);
        usleep(1000); /* the connection is made by then; what is sent earlier would be refused */
        watch(EPOLL_CTL_ADD, p->fd, EPOLLIN, p);
    }
}

static void obey(char *line) {
    int a, b, c;
    double x, y;
    char *rest = strchr(line, ' ');
    rest = rest ? rest + 1 : line;
    if (!strncmp(line, "topic ", 6)) { strncpy(names[topics++], rest, sizeof names[0] - 1); return; }
    if (!strncmp(line, "get ", 4)) { strcpy(get, rest); return; }
    if (!strncmp(line, "post ", 5)) { strcpy(post, rest); return; }
    if (!strncmp(line, "body ", 5)) { strcpy(body, rest); return; }
    if (sscanf(line, "cursor %d %d", &a, &b) >= 1 && a < topics) {
        strncpy(cursors[a], strchr(rest, ' ') + 1, sizeof cursors[a] - 1);
        return;
    }
    begin();
    if (sscanf(line, "ports %d %d %d %d", &read_port, &publish_port, &a, &depth) == 4) connect_publishers(a), answer(0, 0, 0);
    else if (sscanf(line, "open %d %d %d", &a, &b, &c) == 3) open_readers(a, b, c, 200), answer(0, 0, 0);
    else if (sscanf(line, "each %d", &a) == 1) each_topic(a);
    else if (sscanf(line, "closed %lf %lf", &x, &y) == 2) closed(x, y);
    else if (sscanf(line, "paced %lf %lf", &x, &y) == 2) {
        ns start = now();
        int64_t counted = paced(x, y, NULL);
        double took = (double)(now() - start) / 1e9;
        settle();
        answer(took, counted, 0);
    } else if (sscanf(line, "stall %d %d", &a, &b) == 2) {
        for (int i = a; i < b; i++) {
            epoll_ctl(poller, EPOLL_CTL_DEL, readers[i].fd, NULL);
            readers[i].stalled = 1;
            subscribers[readers[i].topic]--;
        }
        answer(0, 0, 0);
    } else if (sscanf(line, "storm %d %d %lf %lf", &storm_from, &storm_to, &x, &y) == 4) storm(x, y);
    else if (sscanf(line, "cut %d %d", &a, &b) == 2) { /* how many of these did the server cut off? */
        int gone = 0;
        for (int i = a; i < b; i++) {
            struct tcp_info info;
            socklen_t size = sizeof info;
            getsockopt(readers[i].fd, IPPROTO_TCP, TCP_INFO, &info, &size);
            gone += info.tcpi_state != TCP_ESTABLISHED;
        }
        answer(0, gone, 0);
    } else if (sscanf(line, "shut %d %d", &a, &b) == 2) {
        for (int i = a; i < b; i++) hang_up(&readers[i]);
        answer(0, 0, 0);
    } else fprintf(stderr, "fanload: what is %s?\n", line), exit(2);
}

int main(void) {
    static char line[TEXT];
    poller = epoll_create1(0);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (*line) obey(line);
    }
    return 0;
}
