package com.example.taxi;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A class as applications have them: an enum, a list, a map and an object of another class. */
public class Trip implements Serializable {
    private static final long serialVersionUID = 1L;

    public long number;
    public Zone zone;
    public double fare;
    public List<String> stops;
    public Map<String, Double> extras;
    public Driver driver;

    /** Where it began. */
    public enum Zone { CITY, AIRPORT, BEACH }

    /** Who drove. */
    public static class Driver implements Serializable {
        private static final long serialVersionUID = 2L;

        public String name;
        public Integer rating;
    }

    /** The trip with a number; Python makes the same ones by the same rules (../_trips.py). */
    public static Trip of(long number) {
        Trip trip = new Trip();
        trip.number = number;
        trip.zone = Zone.values()[(int) (number % 3)];
        trip.fare = number * 0.37 - 75;
        trip.stops = new ArrayList<>();
        for (int stop = 0; stop < number % 4; stop++) {
            trip.stops.add("stop " + stop + " é😀");
        }
        trip.extras = new HashMap<>();
        trip.extras.put("e" + number % 5, number / 4.0);
        trip.driver = new Driver();
        trip.driver.name = "d" + number % 11;
        trip.driver.rating = number % 4 == 0 ? null : (Integer) (int) (number % 6);
        return trip;
    }
}
