package com.example.orders;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;

/** An order as the service has it; it knows nothing of Spark. */
public class Order implements Serializable {
    private static final long serialVersionUID = 1L;

    public long id;
    public String customer;
    public Status status;
    public List<Line> lines = new ArrayList<>();

    /** How far it is. */
    public enum Status { NEW, PAID, CANCELLED }

    /** What was ordered, and how many of it. */
    public static class Line implements Serializable {
        private static final long serialVersionUID = 1L;

        public String sku;
        public int count;
        public double price;
    }
}
