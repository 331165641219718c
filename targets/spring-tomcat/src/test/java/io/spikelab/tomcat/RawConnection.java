package io.spikelab.tomcat;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** One TCP connection that speaks HTTP by hand, so that a test decides what shares it and when it ends. */
final class RawConnection implements AutoCloseable {

    private final Socket socket;
    private final InputStream input;

    RawConnection(int port) throws IOException {
        socket = new Socket("127.0.0.1", port);
        socket.setSoTimeout(20_000);
        input = new BufferedInputStream(socket.getInputStream());
    }

    RawConnection send(String text) throws IOException {
        socket.getOutputStream().write(text.getBytes(StandardCharsets.ISO_8859_1));
        return this;
    }

    RawConnection get(String path) throws IOException {
        return send(request(path, "keep-alive"));
    }

    static String request(String path, String connection) {
        return "GET " + path + " HTTP/1.1\r\nHost: target\r\nConnection: " + connection + "\r\n\r\n";
    }

    /**
     * Reads one answer, its body included.
     *
     * @return the status code
     * @throws EOFException where the server closed the connection without one
     */
    int status() throws IOException {
        String statusLine = line();
        int length = -1;
        boolean chunked = false;
        for (String header = line(); !header.isEmpty(); header = line()) {
            String lower = header.toLowerCase(java.util.Locale.ROOT);
            length = lower.startsWith("content-length:") ? Integer.parseInt(lower.substring(15).trim()) : length;
            chunked |= lower.startsWith("transfer-encoding:") && lower.contains("chunked");
        }
        if (chunked) {
            skipChunks();
        } else {
            input.readNBytes(Math.max(0, length));
        }
        return Integer.parseInt(statusLine.split(" ")[1]);
    }

    private void skipChunks() throws IOException {
        for (int size = Integer.parseInt(line(), 16); size > 0; size = Integer.parseInt(line(), 16)) {
            input.readNBytes(size);
            line();
        }
        line();
    }

    private String line() throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int next = input.read(); next != '\n'; next = input.read()) {
            if (next < 0) {
                throw new EOFException("the server closed the connection");
            }
            if (next != '\r') {
                line.write(next);
            }
        }
        return line.toString(StandardCharsets.US_ASCII);
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
