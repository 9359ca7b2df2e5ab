/* The floor: one thread that copies an event to every reader of its topic, one send each, and knows nothing else.
 * No log, no replay, no limits; a reader that is full loses events. GET …?t=N reads topic N, POST …?t=N publishes. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TOPICS = 256, PEERS = 20000, TEXT = 8192 };

struct peer { int topic, place, size; char in[TEXT]; };
static struct peer *peers[PEERS + 64]; /* by descriptor */
static int readers[TOPICS][PEERS], counts[TOPICS];
static long revision;
static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
static const char done[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

static void put(int fd, const char *text, size_t size) {
    if (send(fd, text, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) { /* full or gone: the reader sees the gap */ }
}

static void leave(int fd) {
    struct peer *p = peers[fd];
    if (p->topic >= 0) {
        int last = readers[p->topic][--counts[p->topic]];
        readers[p->topic][p->place] = last;
        peers[last]->place = p->place;
    }
    free(p);
    peers[fd] = NULL;
    close(fd);
}

static void publish(int topic, const char *body, int size) {
    char frame[TEXT + 64];
    int length = sprintf(frame, "id: %ld\ndata: %.*s\n\n", ++revision, size, body);
    for (int i = 0; i < counts[topic]; i++) put(readers[topic][i], frame, (size_t)length);
}

static void on_data(int fd) {
    struct peer *p = peers[fd];
    ssize_t size = recv(fd, p->in + p->size, sizeof p->in - 1 - (size_t)p->size, 0);
    if (size <= 0) { leave(fd); return; }
    p->size += (int)size;
    p->in[p->size] = 0;
    char *end = strstr(p->in, "\r\n\r\n"), *topic = strstr(p->in, "t=");
    if (!end || !topic) return;
    int number = atoi(topic + 2) % TOPICS;
    if (p->in[0] == 'G') {
        p->topic = number;
        p->place = counts[number];
        readers[number][counts[number]++] = fd;
        put(fd, head, sizeof head - 1);
    } else {
        char *length = strcasestr(p->in, "content-length:");
        int body = length ? atoi(length + 15) : 0;
        if (p->in + p->size < end + 4 + body) return;
        publish(number, end + 4, body);
        put(fd, done, sizeof done - 1);
    }
    p->size = 0;
}

int main(int count, char **words) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), poller = epoll_create1(0), one = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(count > 1 ? words[1] : "0"))};
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[256];
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (void *)&at, sizeof at) || listen(listener, 4096)) return perror("fanwriter"), 1;
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int ready = epoll_wait(poller, events, 256, -1);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd != listener) { if (peers[fd]) on_data(fd); continue; }
            if ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) < 0 || fd >= PEERS) continue;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            peers[fd] = calloc(1, sizeof *peers[fd]);
            peers[fd]->topic = -1;
            event.data.fd = fd;
            epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
        }
    }
}
