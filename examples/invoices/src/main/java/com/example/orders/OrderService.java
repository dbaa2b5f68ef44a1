package com.example.orders;

import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.admin.StreamManager;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.ScalingPolicy;
import io.pravega.client.stream.StreamConfiguration;
import io.pravega.client.stream.impl.JavaSerializer;
import io.pravega.client.stream.impl.UTF8StringSerializer;
import java.net.URI;
import java.util.UUID;

/**
 * A service on the Java client: {@code orders CONTROLLER SCOPE STREAM COUNT} writes orders as Java objects,
 * {@code invoices CONTROLLER SCOPE STREAM COUNT} prints the invoices that the Spark job makes of them.
 */
public final class OrderService {
    private static final long PATIENCE = 60_000;

    private OrderService() {
    }

    public static void main(String[] args) throws Exception {
        ClientConfig config = ClientConfig.builder().controllerURI(URI.create(args[1])).build();
        int count = Integer.parseInt(args[4]);
        if (args[0].equals("orders")) {
            write(config, args[2], args[3], count);
        } else {
            read(config, args[2], args[3], count);
        }
    }

    private static void write(ClientConfig config, String scope, String stream, int count) {
        try (StreamManager streams = StreamManager.create(config)) {
            streams.createScope(scope);
            streams.createStream(scope, stream,
                    StreamConfiguration.builder().scalingPolicy(ScalingPolicy.fixed(2)).build());
        }
        try (EventStreamClientFactory factory = EventStreamClientFactory.withScope(scope, config);
                EventStreamWriter<Order> writer = factory.createEventWriter(stream, new JavaSerializer<>(),
                        EventWriterConfig.builder().build())) {
            for (long id = 0; id < count; id++) {
                Order order = order(id);
                writer.writeEvent(order.customer, order);
            }
            writer.flush();
        }
        System.out.println(count + " orders written to " + scope + "/" + stream);
    }

    private static Order order(long id) {
        Order order = new Order();
        order.id = id;
        order.customer = "customer " + id % 5;
        order.status = id % 4 == 3 ? Order.Status.CANCELLED : Order.Status.PAID;
        for (int number = 0; number <= id % 3; number++) {
            Order.Line line = new Order.Line();
            line.sku = "sku-" + number;
            line.count = number + 1;
            line.price = 2.5 + id;
            order.lines.add(line);
        }
        return order;
    }

    private static void read(ClientConfig config, String scope, String stream, int count) {
        String group = "service-" + UUID.randomUUID().toString().replace("-", "");
        try (ReaderGroupManager groups = ReaderGroupManager.withScope(scope, config);
                EventStreamClientFactory factory = EventStreamClientFactory.withScope(scope, config)) {
            groups.createReaderGroup(group, ReaderGroupConfig.builder().stream(scope + "/" + stream).build());
            try (EventStreamReader<String> reader = factory.createReader("service", group, new UTF8StringSerializer(),
                    ReaderConfig.builder().build())) {
                long end = System.currentTimeMillis() + PATIENCE;
                for (int found = 0; found < count && System.currentTimeMillis() < end;) {
                    EventRead<String> invoice = reader.readNextEvent(1_000);
                    if (invoice.getEvent() != null) {
                        System.out.println(invoice.getEvent());
                        found++;
                    }
                }
            }
            groups.deleteReaderGroup(group);
        }
    }
}
